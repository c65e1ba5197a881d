import { within } from "../platform/deadline.ts";
import type { Prices } from "../platform/prices.ts";
import type { Source } from "../status/sources.ts";
import type { Processors } from "./processors.ts";

/** Milliseconds for an answer: less than a whole look has, so that the processor that does answer is seen as well. */
const patience = 2_500;

/** Asks each payment processor for a price, as a checkout does first. There is none where nobody takes payments. */
export function createProcessorLook({ card, crypto }: Processors, { currency }: Prices): Source | undefined {
  const asks = [
    card && (() => card.client.prices.list({ limit: 1 }, { maxNetworkRetries: 0 })),
    crypto && (() => crypto.greenfield.rate(crypto.currencies[0] ?? "btc", currency)),
  ].filter((ask) => ask !== undefined);
  if (asks.length === 0) return undefined;
  const answers = async (ask: () => Promise<unknown>): Promise<boolean> =>
    within(
      ask().then(() => true),
      patience,
      false,
    );
  return {
    component: "billing",
    async look() {
      const answering = (await Promise.all(asks.map(answers))).filter(Boolean).length;
      if (answering === 0) return "major_outage";
      return answering < asks.length ? "partial_outage" : "operational";
    },
  };
}

import { within } from "../platform/deadline.ts";
import type { Prices } from "../platform/tier-prices.ts";
import type { Source } from "../status/sources.ts";
import type { Processors } from "./processors.ts";

/**
 * Milliseconds to wait for a response. Less than the timeout of the status check, so that a silent processor does not
 * hide the response of the other processor.
 */
const patience = 2_500;

/**
 * Creates a status check that asks each payment processor for a price, as a checkout does. Returns undefined if no
 * processor is configured.
 */
export function createProcessorCheck({ card, crypto }: Processors, { currency }: Prices): Source | undefined {
  const asks = [
    // The sandbox is in this process, and the client that would ask it takes 70 ms to load.
    card?.isSandbox === false ? () => card.client.prices.list({ limit: 1 }, { maxNetworkRetries: 0 }) : undefined,
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
    async check() {
      const answering = (await Promise.all(asks.map(answers))).filter(Boolean).length;
      if (answering === 0) return "major_outage";
      return answering < asks.length ? "partial_outage" : "operational";
    },
  };
}

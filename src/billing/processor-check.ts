import { within } from "../platform/deadline.ts";
import type { Prices } from "../platform/tier-prices.ts";
import type { Source } from "../status/sources.ts";
import type { Processors } from "./processors.ts";

/**
 * Milliseconds to wait for a response. Less than the timeout of the status check, so that a silent processor does not
 * hide the response of the other processor.
 */
const timeout = 2_500;

/**
 * Creates a status check that requests a price from each payment processor except the card sandbox. Returns undefined
 * if there is no such processor.
 */
export function createProcessorCheck({ card, crypto }: Processors, { currency }: Prices): Source | undefined {
  const checks = [
    // The card sandbox is in this process. A check would load Stripe's client, which takes CPU time.
    card?.isSandbox === false ? () => card.client.prices.list({ limit: 1 }, { maxNetworkRetries: 0 }) : undefined,
    crypto && (() => crypto.greenfield.rate(crypto.currencies[0] ?? "btc", currency)),
  ].filter((check) => check !== undefined);
  if (checks.length === 0) return undefined;
  const responds = async (check: () => Promise<unknown>): Promise<boolean> =>
    within(
      check().then(() => true),
      timeout,
      false,
    );
  return {
    component: "billing",
    async check() {
      const responding = (await Promise.all(checks.map(responds))).filter(Boolean).length;
      if (responding === 0) return "major_outage";
      return responding < checks.length ? "partial_outage" : "operational";
    },
  };
}

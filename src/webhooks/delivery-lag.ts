import { measureWait } from "../events/store.ts";
import { findOldestUnclaimed } from "../jobs/store.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Health } from "../status/components.ts";
import type { Source } from "../status/sources.ts";
import { deliveryJob } from "./delivery-queue.ts";
import { fanOutConsumer } from "./fan-out.ts";

/**
 * Minimum lag in milliseconds of each health level. Deliveries normally start within two seconds, because queues are
 * polled once a second.
 */
const bounds: readonly (readonly [min: number, health: Health])[] = [
  [300_000, "major_outage"],
  [60_000, "partial_outage"],
  [6_000, "degraded"],
];

/**
 * Creates the status check of the webhook delivery lag. The lag is the age of the oldest event without deliveries, or
 * of the oldest due delivery to a healthy endpoint. Deliveries that wait behind other deliveries of their account do
 * not count.
 */
export function createDeliveryLag({ db, clock }: Pick<PlatformParts, "db" | "clock">): Source {
  return {
    component: "webhooks",
    async check() {
      const now = clock.now();
      const [due, waited] = await Promise.all([
        findOldestUnclaimed(db, deliveryJob.kind, new Date(now)),
        measureWait(db, fanOutConsumer),
      ]);
      const lag = Math.max(waited, due ? now - due.getTime() : 0);
      return bounds.find(([min]) => lag >= min)?.[1] ?? "operational";
    },
  };
}

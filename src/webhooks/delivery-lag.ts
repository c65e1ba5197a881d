import { measureWait } from "../events/store.ts";
import { findOldestUnclaimed } from "../jobs/store.ts";
import type { Clock } from "../platform/clock.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Health } from "../status/components.ts";
import type { Source } from "../status/sources.ts";
import { deliveryWork } from "./delivery-queue.ts";
import { fanOutConsumer } from "./fan-out.ts";

/** From how many milliseconds on. Deliveries leave within one or two seconds: lanes are looked for once a second. */
const bounds: readonly (readonly [least: number, health: Health])[] = [
  [300_000, "major_outage"],
  [60_000, "partial_outage"],
  [6_000, "degraded"],
];

/**
 * Measures how late deliveries begin: by the oldest event that nobody has made deliveries of, and by the oldest delivery
 * that is due at an endpoint which did not fail lately and that nobody has taken up. Those of an account that has others under way wait for their turn: that is its own load.
 */
export function createDeliveryLag({ db, clock }: { readonly db: Database; readonly clock: Clock }): Source {
  return {
    component: "webhooks",
    async look() {
      const now = clock.now();
      const [due, waited] = await Promise.all([
        findOldestUnclaimed(db, deliveryWork.kind, new Date(now)),
        measureWait(db, fanOutConsumer),
      ]);
      const lag = Math.max(waited, due ? now - due.getTime() : 0);
      return bounds.find(([least]) => lag >= least)?.[1] ?? "operational";
    },
  };
}

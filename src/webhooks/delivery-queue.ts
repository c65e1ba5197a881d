import type { Work } from "../jobs/work.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { insertDeliveries, type NewDelivery } from "./delivery-store.ts";

/** Job kind of deliveries. */
export const deliveryWork = { kind: "webhook" } as const;

/** Data of a delivery job. Its queue partition is the endpoint. */
export interface DeliveryJob {
  readonly deliveryId: string;
}

/**
 * Queues deliveries of events, replays and tests. Events of one subject reach an endpoint in order; replays and tests
 * are unordered. The owner of a job is its account.
 */
export function queueDeliveries(work: Work, tx: Tx, deliveries: readonly NewDelivery[]): void {
  if (deliveries.length === 0) return;
  insertDeliveries(tx, deliveries);
  const jobs = deliveries.map(({ id, endpointId: lane, accountId: owner, subject, payload, replayOf }) => ({
    ...{ lane, owner, data: { deliveryId: id } satisfies DeliveryJob },
    ...(payload === undefined && replayOf === undefined && { order: subject }),
  }));
  work.enqueueAll(tx, deliveryWork, jobs);
}

import type { Work } from "../jobs/work.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { insertDeliveries, type NewDelivery } from "./delivery-store.ts";

/** The kind of work that a delivery is. */
export const deliveryWork = { kind: "webhook" } as const;

/** What a job of that kind says. Its lane is the endpoint's identifier. */
export interface DeliveryJob {
  readonly deliveryId: string;
}

/**
 * Queues deliveries: what is told of events, what is replayed, and tests. Events of one subject come to an endpoint in their
 * order; a replay and a test go beside them. Owners of endpoints are accounts.
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

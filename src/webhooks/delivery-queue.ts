import type { JobQueues } from "../jobs/job-queues.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { insertDeliveries, type NewDelivery } from "./delivery-store.ts";

export const deliveryJob = { kind: "webhook" } as const;

/** Data of a delivery job. Each endpoint has its own queue partition. */
export interface DeliveryJob {
  readonly deliveryId: string;
}

/**
 * Queues deliveries of events, replays and tests. Events of one subject reach an endpoint in order; replays and tests
 * are unordered. The account is the owner of each job.
 */
export function queueDeliveries(jobQueues: JobQueues, tx: Tx, deliveries: readonly NewDelivery[]): void {
  if (deliveries.length === 0) return;
  insertDeliveries(tx, deliveries);
  const jobs = deliveries.map(({ id, endpointId: queue, accountId: owner, subject, payload, replayOf }) => ({
    queue,
    owner,
    data: { deliveryId: id } satisfies DeliveryJob,
    ...(payload === undefined && replayOf === undefined && { order: subject }),
  }));
  jobQueues.enqueueAll(tx, deliveryJob, jobs);
}

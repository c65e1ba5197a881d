import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";
import type { DeliveryStatus, StoredAttempt } from "./tables.ts";

/*
 * Code that queues or settles deliveries takes locks in one order, to avoid deadlocks: endpoint, counts (by triggers of
 * webhook_deliveries), queue partition of the jobs.
 */

const attemptStatement: NamedStatement = {
  name: "webhook-attempt",
  text: `update webhook_deliveries
    set attempts = attempts || $3::jsonb, delivered_at = $5,
      status = case when status = 'dlq' and $2 <> 'delivered' then status else $2 end,
      next_attempt_at = case when status <> 'dlq' then $4::timestamptz end,
      reason = case when $2 <> 'delivered' then reason end
    where id = $1 and (status in ('pending', 'failed') or status = 'dlq' and reason is not null)`,
};

const giveUpStatement: NamedStatement = {
  name: "webhook-give-up",
  text: `update webhook_deliveries set status = 'dlq', reason = $2, next_attempt_at = null
    where id = any($1) and status in ('pending', 'failed')`,
};

const giveUpOpenStatement: NamedStatement = {
  name: "webhook-give-up-open",
  text: `update webhook_deliveries set status = 'dlq', reason = $2, next_attempt_at = null where id in (
      select id from webhook_deliveries where endpoint_id = $1 and status in ('pending', 'failed') order by id limit $3
    )`,
};

const successStatement: NamedStatement = {
  name: "webhook-endpoint-success",
  text: `update webhook_endpoints set consecutive_failures = 0, failing_since = null
    where id = $1 and failing_since is not null`,
};

const failureStatement: NamedStatement = {
  name: "webhook-endpoint-failure",
  text: `update webhook_endpoints set consecutive_failures = consecutive_failures + $3,
      failing_since = coalesce(failing_since, $2), last_failure_at = $2
    where id = $1`,
};

const sweepStatement: NamedStatement = {
  name: "webhook-deliveries-sweep",
  text: `delete from webhook_deliveries where id in (select id from webhook_deliveries where id < $1 order by id limit $2)
    returning 1`,
};

export interface AttemptRecord {
  readonly attempt: StoredAttempt;
  readonly status: DeliveryStatus;
  readonly at: Date;
  /** When the next attempt is due; undefined if there is none. */
  readonly next?: Date | undefined;
}

/**
 * Records an attempt, in a statement sent before the commit. A delivery that was given up stays given up unless it is
 * delivered.
 */
export function recordAttempt(tx: Tx, id: string, { attempt, status, at, next }: AttemptRecord): void {
  const deliveredAt = status === "delivered" ? at : null;
  tx.sendNamed(attemptStatement, [id, status, JSON.stringify([attempt]), next ?? null, deliveredAt]);
}

/** Moves open deliveries to `dlq` with a reason, such as `endpoint_inactive`. */
export function giveUp(tx: Tx, ids: readonly string[], reason: string): void {
  tx.sendNamed(giveUpStatement, [ids, reason]);
}

/** Maximum deliveries given up in the transaction that changes an endpoint. */
const maxAbandoned = 1_000;

/** Gives up the oldest open deliveries of a locked endpoint, at most 1,000. */
export function giveUpOpen(tx: Tx, endpointId: string, reason: string): void {
  tx.sendNamed(giveUpOpenStatement, [endpointId, reason, maxAbandoned]);
}

/** Records a success of an endpoint, which ends a series of failures. */
export function recordEndpointSuccess(tx: Tx, id: string): void {
  tx.sendNamed(successStatement, [id]);
}

/** Records a failed attempt of an endpoint. A delivery counts as one failure, by its first attempt. */
export function recordEndpointFailure(tx: Tx, id: string, { at, isFirst }: { at: Date; isFirst: boolean }): void {
  tx.sendNamed(failureStatement, [id, at, isFirst ? 1 : 0]);
}

/** Deletes up to `limit` deliveries older than an identifier, and returns their number. */
export async function deleteOldDeliveries(db: Queryable, before: string, limit: number): Promise<number> {
  return (await db.named(sweepStatement, [before, limit])).length;
}

import { type Selectable, sql } from "kysely";
import type { Database, NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";
import type { DeliveryStatus, WebhookDeliveriesTable } from "./tables.ts";

export type DeliveryRow = Selectable<WebhookDeliveriesTable>;

export interface NewDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly accountId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly subject: string;
  readonly createdAt: Date;
  /** Event `data` of a test. */
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly replayOf?: string;
}

const insertStatement: NamedStatement = {
  name: "webhook-deliveries-insert",
  text: `insert into webhook_deliveries
      (id, endpoint_id, account_id, event_id, event_type, subject, payload, is_test, replay_of, created_at, next_attempt_at)
    select id, endpoint_id, account_id, event_id, event_type, subject, payload, payload is not null, replay_of, at, at
    from jsonb_to_recordset($1::jsonb) as fresh (
      id text, endpoint_id text, account_id text, event_id text, event_type text, subject text, payload jsonb,
      replay_of text, at timestamptz
    )`,
};

/** Inserts deliveries. Their first attempt is due at their creation. The statement is sent before the commit. */
export function insertDeliveries(tx: Tx, deliveries: readonly NewDelivery[]): void {
  const rows = deliveries.map((delivery) => ({
    id: delivery.id,
    endpoint_id: delivery.endpointId,
    account_id: delivery.accountId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    subject: delivery.subject,
    payload: delivery.payload,
    replay_of: delivery.replayOf,
    at: delivery.createdAt,
  }));
  tx.sendNamed(insertStatement, [JSON.stringify(rows)]);
}

/** Data for an attempt: the delivery, its endpoint and its event. */
export interface DeliveryToSend {
  readonly id: string;
  readonly endpoint_id: string;
  readonly account_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: DeliveryStatus;
  readonly is_test: boolean;
  /** Time of the event, or of the test; null if the event log no longer has the event. */
  readonly event_created_at: Date | null;
  /** `data` of the event; null if the event log no longer has the event. */
  readonly data: Record<string, never> | null;
  /** Columns of the endpoint; null if the endpoint is deleted. */
  readonly url: string | null;
  readonly active: boolean | null;
  readonly secret: Buffer | null;
  readonly prev_secret: Buffer | null;
  readonly grace_expires_at: Date | null;
}

const toSendStatement: NamedStatement = {
  name: "webhook-delivery-to-send",
  text: `select d.id, d.endpoint_id, d.account_id, d.event_id, d.event_type, d.status, d.is_test,
      case when d.is_test then d.created_at else v.created_at end as event_created_at,
      coalesce(d.payload, v.data) as data,
      e.url, e.active, e.secret, e.prev_secret, e.grace_expires_at
    from webhook_deliveries d
      left join webhook_endpoints e on e.id = d.endpoint_id
      left join events v on v.id = d.event_id
    where d.id = $1`,
};

/** Reads the data for an attempt; undefined if the delivery was deleted. */
export async function readDeliveryToSend(db: Queryable, id: string): Promise<DeliveryToSend | undefined> {
  const [row] = await db.named<DeliveryToSend>(toSendStatement, [id]);
  return row;
}

/** Finds a delivery of an account. Returns undefined if its endpoint was deleted. */
export async function findDelivery(
  db: Queryable,
  { id, accountId }: { readonly id: string; readonly accountId: string },
): Promise<DeliveryRow | undefined> {
  return db.sql
    .selectFrom("webhook_deliveries")
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where(sql<boolean>`exists (select from webhook_endpoints where id = webhook_deliveries.endpoint_id)`)
    .executeTakeFirst();
}

export interface DeliveryListQuery {
  readonly accountId: string;
  readonly endpointId: string;
  readonly status: DeliveryStatus | undefined;
  readonly eventType: string | undefined;
  /** Identifier of a delivery. Only older deliveries are listed. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists deliveries, newest first. */
export async function listDeliveries(db: Database, query: DeliveryListQuery): Promise<DeliveryRow[]> {
  let select = db.sql
    .selectFrom("webhook_deliveries")
    .selectAll()
    .where("account_id", "=", query.accountId)
    .where("endpoint_id", "=", query.endpointId);
  if (query.status !== undefined) select = select.where("status", "=", query.status);
  if (query.eventType !== undefined) select = select.where("event_type", "=", query.eventType);
  if (query.before !== undefined) select = select.where("id", "<", query.before);
  return select.orderBy("id", "desc").limit(query.limit).execute();
}

/** Returns whether the event log still has an event. */
export async function hasEvent(db: Queryable, id: string): Promise<boolean> {
  return (await db.sql.selectFrom("events").select("id").where("id", "=", id).executeTakeFirst()) !== undefined;
}

const takeFailedStatement: NamedStatement = {
  name: "webhook-deliveries-take-failed",
  text: `update webhook_deliveries set replayed_at = $3 where id in (
      select id from webhook_deliveries
      where endpoint_id = $1 and status = 'dlq' and id >= $2 and replayed_at is null and not is_test
        and exists (select from events where events.id = event_id)
      order by id limit $4
      for update
    ) returning id, event_id, event_type, subject`,
};

/** Fields that a replay copies from its original. */
export type ReplayedDelivery = Pick<DeliveryRow, "id" | "event_id" | "event_type" | "subject">;

/**
 * Marks up to `limit` deliveries in `dlq` as replayed, and returns these deliveries, oldest first. Skips tests,
 * deliveries that were replayed before, and deliveries of events that are no longer in the event log.
 */
export async function takeFailed(
  tx: Tx,
  { endpointId, from, at, limit }: { endpointId: string; from: string; at: Date; limit: number },
): Promise<ReplayedDelivery[]> {
  const taken = await tx.named<ReplayedDelivery>(takeFailedStatement, [endpointId, from, at, limit]);
  return taken.sort((a, b) => (a.id < b.id ? -1 : 1));
}

export async function recordReplay(tx: Tx, id: string, at: Date): Promise<void> {
  await tx.sql.updateTable("webhook_deliveries").set({ replayed_at: at }).where("id", "=", id).execute();
}

import type { Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Endpoints that receive the events of an account. */
export interface WebhookEndpointsTable {
  id: string;
  account_id: string;
  url: string;
  /** Subscribed event types; `{*}`: all types, including future types. */
  events: string[];
  description: string | null;
  active: Generated<boolean>;
  /** Encrypted. */
  secret: Buffer;
  secret_prefix: string;
  /** Encrypted secret before the last rotation; also signs until the grace period is over. */
  prev_secret: Buffer | null;
  prev_secret_prefix: string | null;
  grace_expires_at: Date | null;
  /** Failed deliveries since the last success. */
  consecutive_failures: Generated<number>;
  /** Time of the first failed attempt since the last 2xx response. */
  failing_since: Date | null;
  last_failure_at: Date | null;
  created_at: Stamp;
  updated_at: Stamp;
}

/** Deliveries per status, excluding tests; maintained by triggers on `webhook_deliveries`. */
interface WebhookCountsTable {
  endpoint_id: string;
  pending: Generated<BigInteger>;
  delivered: Generated<BigInteger>;
  failed: Generated<BigInteger>;
  dlq: Generated<BigInteger>;
}

/** Status of a delivery; see WebhookDeliveryStatus in webhook.proto. */
export type DeliveryStatus = "pending" | "delivered" | "failed" | "dlq";

export interface StoredAttempt {
  readonly number: number;
  /** ISO 8601. */
  readonly started_at: string;
  readonly duration_ms: number;
  readonly response_status?: number;
  readonly response_body?: string;
  readonly error?: string;
}

/** Deliveries of events to endpoints. Identifiers sort by time, for listing and deleting. */
export interface WebhookDeliveriesTable {
  id: string;
  endpoint_id: string;
  account_id: string;
  event_id: string;
  event_type: string;
  subject: string;
  /** Event `data` of a test, which is not in the event log; null: read from the event log. */
  payload: JSONColumnType<Record<string, unknown>> | null;
  status: Generated<DeliveryStatus>;
  /** At most 6 attempts. */
  attempts: JSONColumnType<StoredAttempt[], string | undefined, string>;
  next_attempt_at: Date | null;
  is_test: Generated<boolean>;
  replay_of: string | null;
  /** When a replay of the delivery was requested. */
  replayed_at: Date | null;
  /** Why the delivery is in `dlq` although attempts were left, such as `endpoint_inactive`. */
  reason: string | null;
  created_at: Stamp;
  delivered_at: Date | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    webhook_endpoints: WebhookEndpointsTable;
    webhook_counts: WebhookCountsTable;
    webhook_deliveries: WebhookDeliveriesTable;
  }
}

/**
 * Builds a trigger function that updates the counts. Rows are locked in a fixed order, so that statements that affect
 * several endpoints do not deadlock. Deleted endpoints have no counts.
 */
const countChanges = (name: string, changes: string): string =>
  `create function ${name}() returns trigger language plpgsql as $$
    begin
      perform from webhook_counts where endpoint_id in (select endpoint_id from (${changes}) as changes)
        order by endpoint_id for no key update;
      update webhook_counts as counts set
          pending = counts.pending + sums.pending,
          delivered = counts.delivered + sums.delivered,
          failed = counts.failed + sums.failed,
          dlq = counts.dlq + sums.dlq
        from (
          select endpoint_id,
            coalesce(sum(change) filter (where status = 'pending'), 0) as pending,
            coalesce(sum(change) filter (where status = 'delivered'), 0) as delivered,
            coalesce(sum(change) filter (where status = 'failed'), 0) as failed,
            coalesce(sum(change) filter (where status = 'dlq'), 0) as dlq
          from (${changes}) as changes group by endpoint_id
        ) as sums
        where counts.endpoint_id = sums.endpoint_id;
      return null;
    end
  $$`;

const added = "select endpoint_id, status, 1 as change from new_rows where not is_test";
const removed = "select endpoint_id, status, -1 as change from old_rows where not is_test";

export const webhookMigrations: Migrations = {
  "024-webhooks": [
    `create table webhook_endpoints (
      id text primary key,
      account_id text not null references accounts (id),
      url text not null,
      events text[] not null,
      description text,
      active boolean not null default true,
      secret bytea not null,
      secret_prefix text not null,
      prev_secret bytea,
      prev_secret_prefix text,
      grace_expires_at timestamptz,
      consecutive_failures integer not null default 0,
      failing_since timestamptz,
      last_failure_at timestamptz,
      created_at timestamptz not null default app_now(),
      updated_at timestamptz not null default app_now()
    )`,
    "create index webhook_endpoints_account on webhook_endpoints (account_id, id)",
    "create index webhook_endpoints_failing on webhook_endpoints (failing_since) where active and failing_since is not null",

    // A separate table, because counts change with every delivery, while endpoints are read for every event.
    `create table webhook_counts (
      endpoint_id text primary key references webhook_endpoints (id) on delete cascade,
      pending bigint not null default 0,
      delivered bigint not null default 0,
      failed bigint not null default 0,
      dlq bigint not null default 0
    ) with (fillfactor = 50)`,

    // No foreign key to the endpoint: deliveries of a deleted endpoint are cleared later, in batches.
    `create table webhook_deliveries (
      id text primary key,
      endpoint_id text not null,
      account_id text not null,
      event_id text not null,
      event_type text not null,
      subject text not null,
      payload jsonb,
      status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dlq')),
      attempts jsonb not null default '[]',
      next_attempt_at timestamptz,
      is_test boolean not null default false,
      replay_of text,
      replayed_at timestamptz,
      reason text,
      created_at timestamptz not null default app_now(),
      delivered_at timestamptz
    )`,
    // Deliveries are deleted with their account, even if their endpoint was deleted before.
    "create index webhook_deliveries_endpoint on webhook_deliveries (account_id, endpoint_id, id)",
    "create index webhook_deliveries_status on webhook_deliveries (endpoint_id, status, id)",
    "create index webhook_deliveries_type on webhook_deliveries (endpoint_id, event_type, id)",

    countChanges("count_added_deliveries", added),
    countChanges("count_moved_deliveries", `${added} union all ${removed}`),
    countChanges("count_removed_deliveries", removed),
    `create trigger count_added after insert on webhook_deliveries
      referencing new table as new_rows for each statement execute function count_added_deliveries()`,
    `create trigger count_moved after update on webhook_deliveries
      referencing new table as new_rows old table as old_rows
      for each statement execute function count_moved_deliveries()`,
    `create trigger count_removed after delete on webhook_deliveries
      referencing old table as old_rows for each statement execute function count_removed_deliveries()`,
  ],
  "171-webhook-replays": [
    `create index webhook_deliveries_replayed on webhook_deliveries (endpoint_id)
      where status = 'dlq' and replayed_at is not null`,
  ],
};

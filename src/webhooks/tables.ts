import type { Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Where the events of an account are sent. */
export interface WebhookEndpointsTable {
  id: string;
  account_id: string;
  url: string;
  /** The types that it is told of; `{*}`: all of them, later ones too. */
  events: string[];
  description: string | null;
  active: Generated<boolean>;
  /** Sealed. */
  secret: Buffer;
  secret_prefix: string;
  /** The secret before the last rotation, sealed: it signs as well until the grace is over. */
  prev_secret: Buffer | null;
  prev_secret_prefix: string | null;
  grace_expires_at: Date | null;
  /** Deliveries that have failed since the last that did not. */
  consecutive_failures: Generated<number>;
  /** When the first attempt failed since the last one that was answered with 2xx. */
  failing_since: Date | null;
  last_failure_at: Date | null;
  created_at: Stamp;
  updated_at: Stamp;
}

/** How many deliveries of the log are where, tests aside: kept by triggers on `webhook_deliveries`. */
interface WebhookCountsTable {
  endpoint_id: string;
  pending: Generated<BigInteger>;
  delivered: Generated<BigInteger>;
  failed: Generated<BigInteger>;
  dlq: Generated<BigInteger>;
}

/** Where a delivery is; see WebhookDeliveryStatus in webhook.proto. */
export type DeliveryStatus = "pending" | "delivered" | "failed" | "dlq";

/** One attempt at a delivery, as its row keeps it. */
export interface StoredAttempt {
  readonly number: number;
  /** ISO 8601. */
  readonly started_at: string;
  readonly duration_ms: number;
  readonly response_status?: number;
  readonly response_body?: string;
  readonly error?: string;
}

/** One event on its way to one endpoint. Identifiers sort by time: the log is cleared and listed by them. */
export interface WebhookDeliveriesTable {
  id: string;
  endpoint_id: string;
  account_id: string;
  event_id: string;
  event_type: string;
  subject: string;
  /** `data` of the event of a test, which the log of events does not have; null: it is read there. */
  payload: JSONColumnType<Record<string, unknown>> | null;
  status: Generated<DeliveryStatus>;
  /** At most 6. */
  attempts: JSONColumnType<StoredAttempt[], string | undefined, string>;
  next_attempt_at: Date | null;
  is_test: Generated<boolean>;
  replay_of: string | null;
  /** When a replay of it was asked for. */
  replayed_at: Date | null;
  /** Why it is in `dlq` although an attempt was left, such as `endpoint_inactive`. */
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
 * A function for a trigger that adds changes to the counts. Rows are locked in one order, so that two statements that
 * concern several endpoints do not wait for each other. An endpoint that is gone has no counts.
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
  "043-webhooks": [
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
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    )`,
    "create index webhook_endpoints_account on webhook_endpoints (account_id, id)",

    // Beside the endpoint, which is read for every event: this row changes with every delivery.
    `create table webhook_counts (
      endpoint_id text primary key references webhook_endpoints (id) on delete cascade,
      pending bigint not null default 0,
      delivered bigint not null default 0,
      failed bigint not null default 0,
      dlq bigint not null default 0
    ) with (fillfactor = 50)`,

    // No reference to the endpoint: what a deleted one leaves is cleared later, some rows at a time.
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
      created_at timestamptz not null default now(),
      delivered_at timestamptz
    )`,
    // Those of an account are deleted with it, also where their endpoint was before.
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
  "051-failing-webhooks": [
    "create index webhook_endpoints_failing on webhook_endpoints (failing_since) where active and failing_since is not null",
  ],
};

import type { ColumnType, Generated } from "kysely";
import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** Requests with an Idempotency-Key and their outcomes. */
interface IdempotencyKeysTable {
  account_id: string;
  key: string;
  /** API key or user of the first request. Other callers never receive the response. */
  caller: Generated<string>;
  /** SHA-256 of method, path and body. */
  request_hash: Buffer;
  /** First identifier that the request generates, without prefix. */
  seed: Generated<string>;
  /** Number of the attempt. Only the latest attempt may commit. */
  epoch: ColumnType<string, undefined, string>;
  /** Last heartbeat of the running attempt, or `-infinity` after the attempt has failed. */
  beat_at: Stamp;
  /** Response message in binary, encrypted. Null until the request succeeds. */
  answer: Buffer | null;
  /** JSON of a permanent failure, encrypted. Null until the request fails permanently. */
  failure: Buffer | null;
  created_at: Stamp;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    idempotency_keys: IdempotencyKeysTable;
  }
}

export const idempotencyMigrations: Migrations = {
  "009-idempotency-keys": [
    `create table idempotency_keys (
      account_id text not null references accounts (id),
      key text not null,
      caller text not null default '',
      request_hash bytea not null,
      seed text not null default '',
      epoch bigint not null default 1,
      beat_at timestamptz not null default app_now(),
      answer bytea,
      failure bytea,
      created_at timestamptz not null default app_now(),
      primary key (account_id, key)
    )`,
    "create index idempotency_keys_age on idempotency_keys (created_at)",
  ],
};

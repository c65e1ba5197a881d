import type { ColumnType, Generated } from "kysely";
import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** Requests with an Idempotency-Key, and what came of them. */
interface IdempotencyKeysTable {
  account_id: string;
  key: string;
  /** Key or user of the first request: its answer is for nobody else. */
  caller: Generated<string>;
  /** SHA-256 of method, path and body. */
  request_hash: Buffer;
  /** The first identifier of what the request makes, without its prefix. */
  seed: Generated<string>;
  /** Counts the attempts: only the last one may commit. */
  epoch: ColumnType<string, undefined, string>;
  /** When the gateway of the attempt that runs was last heard of. */
  beat_at: Stamp;
  /** The answer's message in binary; with `failure`, null while an attempt runs. */
  answer: Buffer | null;
  /** JSON of a failure that is kept. */
  failure: Buffer | null;
  /** `answer` and `failure` are sealed: those of earlier releases need not be. */
  sealed: Generated<boolean>;
  created_at: Stamp;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    idempotency_keys: IdempotencyKeysTable;
  }
}

export const idempotencyMigrations: Migrations = {
  "011-attempts": [
    `alter table idempotency_keys
      add column caller text not null default '',
      add column seed text not null default '',
      add column epoch bigint not null default 1,
      add column beat_at timestamptz not null default now(),
      add column sealed boolean not null default false,
      alter column failure type bytea using convert_to(failure, 'UTF8')`,
  ],
};

import type { Migrations } from "../../platform/postgres/schema.ts";

/** Fetches in progress. A row that its gateway did not delete no longer counts after `lapses_at`. */
interface FetchesTable {
  id: string;
  account_id: string;
  /** Fetches with the same browser run in contexts of their own. */
  browser_id: string;
  /** Hash of the browser options, which are the same for all fetches in a browser. */
  options_hash: Buffer;
  worker_id: string;
  /** Tier of the account when the fetch began; its limits apply to the fetch. */
  tier: string;
  began_at: Date;
  lapses_at: Date;
}

export const fetchMigrations: Migrations = {
  "117-fetches": [
    `create table fetches (
      id text primary key,
      account_id text not null references accounts (id),
      browser_id text not null,
      options_hash bytea not null,
      worker_id text not null references workers (id),
      tier text not null,
      began_at timestamptz not null,
      lapses_at timestamptz not null
    )`,
    "create index fetches_account on fetches (account_id)",
    "create index fetches_worker on fetches (worker_id)",
  ],
};

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    fetches: FetchesTable;
  }
}

import type { Migrations } from "../platform/postgres/schema.ts";

export const deletionMigrations: Migrations = {
  "042-deletions": [
    "alter table accounts add column deletes_at timestamptz",
    "create index accounts_deletion on accounts (deletes_at) where deletes_at is not null",
  ],
};

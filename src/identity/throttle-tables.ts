import type { Migrations } from "../platform/postgres/schema.ts";

/** Tries at what can be guessed, within the last hour. */
interface BrakesTable {
  /** What is tried, and by whom it is counted. */
  name: string;
  tries: Date[];
  /** When the last of them counts no more. */
  until: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    brakes: BrakesTable;
  }
}

export const brakeMigrations: Migrations = {
  "031-brakes": [
    "create table brakes (name text primary key, tries timestamptz[] not null, until timestamptz not null)",
    "create index brakes_age on brakes (until)",
  ],
};

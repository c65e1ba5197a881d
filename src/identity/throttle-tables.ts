import type { Migrations } from "../platform/postgres/schema.ts";

/** Throttled attempts of the last hour. */
interface BrakesTable {
  /** Name of the throttle, including its subject. */
  name: string;
  tries: Date[];
  /** Time at which the latest attempt expires. */
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

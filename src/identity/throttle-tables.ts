import type { Migrations } from "../platform/postgres/schema.ts";

/** Attempts of the last hour, by throttle. */
interface ThrottlesTable {
  /** Name of the throttle, including its subject. */
  name: string;
  tries: Date[];
  /** Time at which the latest attempt expires. */
  until: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    throttles: ThrottlesTable;
  }
}

export const throttleMigrations: Migrations = {
  "031-brakes": [
    "create table brakes (name text primary key, tries timestamptz[] not null, until timestamptz not null)",
    "create index brakes_age on brakes (until)",
  ],
  "102-throttles": [
    "alter table brakes rename to throttles",
    "alter index brakes_pkey rename to throttles_pkey",
    "alter index brakes_age rename to throttles_age",
  ],
};

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
  "012-throttles": [
    "create table throttles (name text primary key, tries timestamptz[] not null, until timestamptz not null)",
    "create index throttles_age on throttles (until)",
  ],
};

import type { Migrations } from "./schema.ts";

/**
 * Creates `app_now()`, the time of all statements. PostgreSQL inlines it to `clock_timestamp()`. The function can be
 * replaced to control time.
 */
export const appNowMigrations: Migrations = {
  "001-app-now": [
    "create function app_now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()'",
  ],
};

import type { Migrations } from "./schema.ts";

/**
 * Adds `app_now()`, the time of all statements. PostgreSQL inlines it to `clock_timestamp()`. Tests replace the
 * function to control time.
 */
export const appNowMigrations: Migrations = {
  "095-app-now": [
    "create function app_now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()'",
    `do $$
    declare stamp record;
    begin
      for stamp in
        select table_name, column_name, replace(column_default, 'now()', 'app_now()') as value
        from information_schema.columns where table_schema = current_schema() and column_default like '%now()%'
      loop
        execute format('alter table %I alter column %I set default %s', stamp.table_name, stamp.column_name, stamp.value);
      end loop;
    end $$`,
  ],
};

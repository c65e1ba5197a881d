import type { Migrations } from "./schema.ts";

/**
 * Adds `app_now()`, the time in all statements. It is `clock_timestamp()`, as which PostgreSQL inlines it. A test moves the
 * time of its own database by a replacement of the function.
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

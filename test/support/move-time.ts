import { sql } from "kysely";
import type { Queryable } from "../../src/platform/postgres/database.ts";

/** Moves the time of a test's own database to this many milliseconds after the machine's, for all statements. */
export async function moveTime({ sql: db }: Queryable, milliseconds: number): Promise<void> {
  const seconds = sql.lit(`${milliseconds / 1_000} s`);
  await sql`
    create or replace function app_now() returns timestamptz language sql volatile parallel safe
    return clock_timestamp() + ${seconds}::interval`.execute(db);
}

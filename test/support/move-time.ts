import { sql } from "kysely";
import type { Queryable } from "../../src/platform/postgres/database.ts";

/** Shifts the time of a test's database by milliseconds relative to the machine's, for all statements. */
export async function moveTime({ sql: db }: Queryable, milliseconds: number): Promise<void> {
  const seconds = sql.lit(`${milliseconds / 1_000} s`);
  await sql`
    create or replace function app_now() returns timestamptz language sql volatile parallel safe
    return clock_timestamp() + ${seconds}::interval`.execute(db);
}

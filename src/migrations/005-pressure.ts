import { type Kysely, sql } from "kysely";

/** Workers say what closes them to new sessions. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw("alter table workers add column closed_by text").execute(db);
}

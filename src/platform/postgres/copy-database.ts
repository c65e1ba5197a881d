import { sql } from "kysely";
import type { Database, Queryable, Tx } from "./database.ts";

/** Rows that are read and written at a time. The largest hold 256 KiB, and are text of twice that on the way. */
const batch = 50;

/** Finds the tables, each after those that it refers to: they were made in that order. */
async function findTables(db: Queryable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not like 'kysely\\_%'
    order by oid`.execute(db.sql);
  return rows.map(({ name }) => name);
}

/** Rows travel as JSON that nobody here reads: PostgreSQL writes and reads every type of its own in it, to the last digit. */
async function copyTable(from: Tx, to: Tx, table: string): Promise<number> {
  const declaration = sql`declare copied cursor for select to_jsonb(t)::text as row from ${sql.table(table)} t`;
  await declaration.execute(from.sql);
  let count = 0;
  for (;;) {
    const { rows } = await sql<{ row: string }>`fetch ${sql.lit(batch)} from copied`.execute(from.sql);
    if (rows.length === 0) break;
    const json = `[${rows.map(({ row }) => row).join(",")}]`;
    await sql`insert into ${sql.table(table)} overriding system value
      select * from jsonb_populate_recordset(null::${sql.table(table)}, ${json}::jsonb)`.execute(to.sql);
    count += rows.length;
  }
  await sql`close copied`.execute(from.sql);
  return count;
}

async function copySequences(from: Tx, to: Tx): Promise<void> {
  const { rows } = await sql<{ name: string; last: string }>`
    select sequencename as name, last_value as last from pg_sequences
    where schemaname = 'public' and last_value is not null`.execute(from.sql);
  for (const { name, last } of rows) await sql`select setval(${name}, ${last})`.execute(to.sql);
}

/** Says whether a database has tables of ours. */
export async function isMigrated(db: Queryable): Promise<boolean> {
  const { rows } = await sql<{ is: boolean }>`select to_regclass('kysely_migration') is not null as is`.execute(db.sql);
  return rows[0]?.is ?? false;
}

/**
 * Copies what one database holds into another, and says how many rows that were. Both have the tables of the same
 * migrations, whatever release of PostgreSQL they run on; what the other one holds is lost. Nobody else may write to
 * either meanwhile. It is all or nothing.
 */
export function copyDatabase(from: Database, to: Database): Promise<number> {
  return from.transaction((source) =>
    to.transaction(async (target) => {
      const tables = await findTables(source);
      await sql`truncate ${sql.join(tables.map((name) => sql.table(name)))}`.execute(target.sql);
      let count = 0;
      for (const table of tables) count += await copyTable(source, target, table);
      await copySequences(source, target);
      return count;
    }),
  );
}

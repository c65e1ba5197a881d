import { sql } from "kysely";
import type { Database, Queryable, Tx } from "./database.ts";

/** Rows per batch. The largest rows are 256 KiB, and 512 KiB as text. */
const batch = 50;

/** Lists the tables in order of creation, so that referenced tables come first. */
async function findTables(db: Queryable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not like 'kysely\\_%'
    order by oid`.execute(db.sql);
  return rows.map(({ name }) => name);
}

/** Copies rows as JSON text, in which PostgreSQL preserves every type exactly. */
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

/** Creates the source's partitions in the target, because migrations do not create partitions. */
async function createPartitions(from: Tx, to: Tx): Promise<void> {
  const { rows } = await sql<{ name: string; parent: string; bound: string }>`
    select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits join pg_class c on c.oid = inhrelid join pg_class p on p.oid = inhparent
    where c.relkind = 'r' and c.relispartition`.execute(from.sql);
  for (const { name, parent, bound } of rows)
    await sql`create table if not exists ${sql.table(name)} partition of ${sql.table(parent)} ${sql.raw(bound)}`.execute(
      to.sql,
    );
}

/** Returns whether a database has tables of the service. */
export async function isMigrated(db: Queryable): Promise<boolean> {
  const { rows } = await sql<{ is: boolean }>`select to_regclass('kysely_migration') is not null as is`.execute(db.sql);
  return rows[0]?.is ?? false;
}

/**
 * Replaces the contents of `to` with a copy of `from`, in one transaction. Returns the number of rows. Both databases
 * need the same migrations, but may run different versions of PostgreSQL. There must be no other writers.
 */
export function copyDatabase(from: Database, to: Database): Promise<number> {
  return from.transaction((source) =>
    to.transaction(async (target) => {
      await createPartitions(source, target);
      const tables = await findTables(source);
      await sql`truncate ${sql.join(tables.map((name) => sql.table(name)))}`.execute(target.sql);
      let count = 0;
      for (const table of tables) count += await copyTable(source, target, table);
      await copySequences(source, target);
      return count;
    }),
  );
}

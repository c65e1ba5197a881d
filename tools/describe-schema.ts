import { sql } from "kysely";
import type { Queryable } from "../src/platform/postgres/database.ts";

const heading = `-- Schema after all migrations. Written by \`npm run accept-contract\` from the catalog of a migrated database;
-- test/platform/schema.test.ts compares it. Tables, then sequences and functions, each in order of creation.`;

const columns = sql`
  select string_agg(concat_ws(' ', '  ' || quote_ident(attname), format_type(atttypid, atttypmod),
      case when attstorage <> typstorage then 'STORAGE ' || case attstorage when 'e' then 'EXTERNAL' when 'm' then 'MAIN' when 'p' then 'PLAIN' else 'EXTENDED' end end,
      case when attidentity = 'a' then 'GENERATED ALWAYS AS IDENTITY' when attnotnull then 'NOT NULL' end,
      'DEFAULT ' || pg_get_expr(adbin, adrelid)), E',\n' order by attnum)
  from pg_attribute join pg_type on pg_type.oid = atttypid left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where attrelid = c.oid and attnum > 0 and not attisdropped`;

/** All constraints except NOT NULL, which are listed only since PostgreSQL 18. */
const constraints = sql`
  select string_agg(E',\n  CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid), '' order by contype, conname)
  from pg_constraint where conrelid = c.oid and contype <> 'n'`;

/** Indexes that do not belong to a constraint. */
const indexes = sql`
  select string_agg(E'\n' || pg_get_indexdef(indexrelid) || ';', '' order by indexrelid)
  from pg_index where indrelid = c.oid and not exists (select from pg_constraint where conindid = indexrelid)`;

const triggers = sql`
  select string_agg(E'\n' || pg_get_triggerdef(oid) || ';', '' order by tgname)
  from pg_trigger where tgrelid = c.oid and not tgisinternal`;

/** Returns the statements that create the schema of a migrated database. */
export async function describeSchema(db: Queryable): Promise<string> {
  const { rows } = await sql<{ text: string }>`
    select concat('CREATE TABLE ', quote_ident(relname), E' (\n', (${columns}), (${constraints}), E'\n)',
        ' PARTITION BY ' || pg_get_partkeydef(c.oid), ' WITH (' || array_to_string(reloptions, ', ') || ')', ';', (${indexes}), (${triggers})) as text, 1 as kind, oid
      from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname not like 'kysely\\_%'
    union all
    select 'CREATE SEQUENCE ' || quote_ident(relname) || ';', 2, oid
      from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S'
        and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'i')
    union all
    select rtrim(pg_get_functiondef(oid), E'\n') || ';', 3, oid
      from pg_proc where pronamespace = 'public'::regnamespace
    order by kind, oid`.execute(db.sql);
  return `${[heading, ...rows.map(({ text }) => text.replaceAll("public.", ""))].join("\n\n")}\n`;
}

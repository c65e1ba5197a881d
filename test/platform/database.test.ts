import { rm } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { migrations } from "../../src/app/migrations.ts";
import { type Database, openDatabase, type Queryable, type Tx } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import type { Migrations } from "../../src/platform/postgres/schema.ts";
import { openStorage } from "../../src/platform/postgres/storage.ts";
import { databaseUrl, makeDataDirectory, silentLog } from "../support/database.ts";

let directory: string;
let postgres: EmbeddedPostgres;

beforeAll(async () => {
  directory = await makeDataDirectory();
  postgres = createEmbeddedPostgres(directory, silentLog);
  await postgres.start();
});
afterAll(async () => {
  await postgres.stop();
  await rm(directory, { recursive: true, force: true });
});

function open() {
  const db = openDatabase(postgres.target, silentLog, 1);
  onTestFinished(() => db.close());
  return db;
}

/** Creates two rows. Returns a function that locks one of them for a transaction. */
async function makeRows(db: Database) {
  await sql`create table if not exists rows_to_lock as select id from generate_series(1, 2) id`.execute(db.sql);
  return (tx: Tx, id: number) => sql`select from rows_to_lock where id = ${id} for update`.execute(tx.sql);
}

const ownPid = { name: "own-pid", text: "select pg_backend_pid() as pid" };
const end = { name: "end", text: "select pg_terminate_backend($1, 5000) as ended" };
const isThere = { name: "is-there", text: "select count(*)::int from pg_stat_activity where pid = $1" };

test("an empty database is migrated once when several gateways start at the same time", async () => {
  const databases = [open(), open(), open(), open()];
  await Promise.all(databases.map((db) => db.migrate(migrations)));
  const count = { name: "count", text: "select count(*)::int from lease_sweep" };
  const counted = databases.map((db) => db.named<{ count: number }>(count, []));
  expect(await Promise.all(counted)).toEqual(databases.map(() => [{ count: 1 }]));
}, 60_000);

/** Creates a database to which some migrations were applied. */
async function createDatabase(name: string, applied: Migrations) {
  await open().named({ name: `create-${name}`, text: `create database ${name}` }, []);
  const target = { url: databaseUrl(join(directory, "postgres", "run"), name) };
  const db = openDatabase(target, silentLog, 1);
  onTestFinished(() => db.close());
  await db.migrate(applied);
  return { db, target };
}

test("a database created before the first release is refused by control processes and gateways", async () => {
  const { db, target } = await createDatabase("unreleased", { "001-ground": ["create table accounts (id text)"] });
  const refusal = "the database was created before release 0.2.0 and cannot be upgraded: start with an empty DATA_DIR";
  await expect(db.migrate(migrations)).rejects.toThrow(refusal);
  const { part } = openStorage(target, silentLog, migrations, { schemaMode: "await" });
  onTestFinished(async () => void (await part.stop?.()));
  await expect(part.start?.()).rejects.toThrow(refusal);
});

test("a release accepts a database with migrations of a later release", async () => {
  const later = { ...migrations, "999-later": ["create table later (id text)"] };
  const { db } = await createDatabase("later", later);
  expect(await db.migrate(migrations)).toEqual({ applied: [], newer: ["999-later"] });
  expect(await db.migrate(later)).toEqual({ applied: [], newer: [] });
});

test("a transaction fails if its connection breaks between statements, and the next transaction succeeds", async () => {
  const [db, other] = [open(), open()];
  const broken = db.transaction(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.sql);
    expect(await other.named(end, [rows[0]?.pid])).toEqual([{ ended: true }]);
    await sql`select 1`.execute(tx.sql);
  });
  await expect(broken).rejects.toMatchObject({ slug: "internal", retryAfter: 1 });
  expect(await db.named(ownPid, [])).toHaveLength(1);
});

test("limits the time of statements, locks and idle transactions, longer in migrations", async () => {
  const limits = `select array[${["statement", "lock", "idle_in_transaction_session"]
    .map((name) => `current_setting('${name}_timeout')`)
    .join()}] as limits`;
  const { db } = await createDatabase("limited", { "001": [`create table of_migrations as ${limits}`] });
  expect(await db.named({ name: "limits", text: limits }, [])).toEqual([{ limits: ["10s", "5s", "3s"] }]);
  const ofMigrations = { name: "of-migrations", text: "select limits from of_migrations" };
  expect(await db.named(ofMigrations, [])).toEqual([{ limits: ["10min", "10min", "10min"] }]);
});

test("a query waits seconds for a connection if all are in use", async () => {
  const db = open();
  const held = db.named({ name: "hold", text: "select pg_sleep(3.5)" }, []);
  expect(await db.named(ownPid, [])).toHaveLength(1);
  await held;
});

test("close ends all connections, whatever they were used for", async () => {
  const db = openDatabase(postgres.target, silentLog, 1);
  const [row] = await db.named<{ pid: number }>(ownPid, []);
  await db.close();
  const other = open();
  await expect.poll(() => other.named(isThere, [row?.pid])).toEqual([{ count: 0 }]);
});

test("a transaction rolls back after a failed statement even if its error was caught", async () => {
  const db = open();
  await sql`create table swallowed (id int)`.execute(db.sql);
  let hooks = 0;
  const run = db.transaction(async (tx) => {
    tx.afterCommit(() => {
      hooks += 1;
    });
    await sql`insert into swallowed values (1)`.execute(tx.sql);
    await sql`select 1 / 0`.execute(tx.sql).catch(() => undefined);
  });
  await expect(run).rejects.toThrow("division by zero");
  const { rows } = await sql`select * from swallowed`.execute(db.sql);
  expect({ rows, hooks }).toEqual({ rows: [], hooks: 0 });
});

test("a transaction that was aborted in a deadlock runs again", async () => {
  const [one, other] = [open(), open()];
  const lock = await makeRows(one);
  const bothHoldOne = Promise.withResolvers<void>();
  let runs = 0;
  const crosswise = (db: Database, [first, second]: [number, number]) =>
    db.transaction(async (tx) => {
      await lock(tx, first);
      runs += 1;
      if (runs === 2) bothHoldOne.resolve();
      await bothHoldOne.promise;
      await lock(tx, second);
      return first;
    });
  expect(await Promise.all([crosswise(one, [1, 2]), crosswise(other, [2, 1])])).toEqual([1, 2]);
  // The aborted transaction may lock its row again before the other one wakes, which causes another deadlock.
  expect(runs).toBeGreaterThanOrEqual(3);
});

test("reads return the same types inside and outside a transaction", async () => {
  const db = open();
  const sum = { name: "sum", text: "select 1 + $1::int as sum" };
  const read = (from: Queryable) => from.named<{ sum: number }>(sum, [2]);
  expect(await db.transaction(read)).toEqual(await read(db));
});

test("a connection prepares statements that run often, unless a migration would break them", async () => {
  const db = open();
  await sql`create table if not exists often (id integer)`.execute(db.sql);
  const prepared = { name: "prepared", text: "select statement as text from pg_prepared_statements order by 1" };
  const texts = async () => (await db.named<{ text: string }>(prepared, [])).map(({ text }) => text);
  const seldom = sql`select id from often where id = ${2} and id > 0`;
  const often = sql`select id from often where id = ${1}`;
  const whole = sql`select * from often where id = ${1}`;
  for (let left = 50; left > 0; left -= 1) {
    await often.execute(db.sql);
    await db.transaction((tx) => whole.execute(tx.sql));
    if (left > 41) await seldom.execute(db.sql);
  }
  expect(await texts()).toEqual(["select id from often where id = $1", prepared.text]);
  await sql`alter table often add column more integer`.execute(db.sql);
  await expect(whole.execute(db.sql)).resolves.toMatchObject({ rows: [] });
});

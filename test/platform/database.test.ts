import { rm } from "node:fs/promises";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../src/platform/database.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/embedded-postgres.ts";
import { makeDataDirectory, silentLog } from "../support/database.ts";

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

const ownPid = { name: "own-pid", text: "select pg_backend_pid() as pid" };
const end = { name: "end", text: "select pg_terminate_backend($1, 5000) as ended" };
const isThere = { name: "is-there", text: "select count(*)::int from pg_stat_activity where pid = $1" };

test("should migrate an empty database once when several gateways start at the same time", async () => {
  const databases = [open(), open(), open(), open()];
  await Promise.all(databases.map((db) => db.migrate()));
  const count = { name: "count", text: "select count(*)::int from lease_sweep" };
  const counted = databases.map((db) => db.named<{ count: number }>(count, []));
  expect(await Promise.all(counted)).toEqual(databases.map(() => [{ count: 1 }]));
}, 60_000);

test("should fail a transaction whose connection breaks between two statements, and go on with another", async () => {
  const [db, other] = [open(), open()];
  const broken = db.transaction(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.sql);
    expect(await other.named(end, [rows[0]?.pid])).toEqual([{ ended: true }]);
    await sql`select 1`.execute(tx.sql);
  });
  await expect(broken).rejects.toMatchObject({ slug: "internal", retryAfter: 1 });
  expect(await db.named(ownPid, [])).toHaveLength(1);
});

test("should end its connections when it is closed, whatever they were used for", async () => {
  const db = openDatabase(postgres.target, silentLog, 1);
  const [row] = await db.named<{ pid: number }>(ownPid, []);
  await db.close();
  const other = open();
  await expect.poll(() => other.named(isThere, [row?.pid]), { timeout: 5_000 }).toEqual([{ count: 0 }]);
});

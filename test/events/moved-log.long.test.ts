import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { migrations } from "../../src/app/migrations.ts";
import { createEventLog, type EventLog } from "../../src/events/event-log.ts";
import { SessionLiveEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog, startOwnDatabase } from "../support/database.ts";
import { startDebianPostgres } from "../support/debian-postgres.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");
const subject = ids.next("ses");

function open(url: string): Database {
  const db = openDatabase({ url }, silentLog, 3);
  onTestFinished(() => db.close());
  return db;
}

function startLog(db: Database): EventLog {
  const events = createEventLog({ db, bus: createLocalBus(), ids, clock: systemClock, log: silentLog });
  events.start();
  onTestFinished(() => events.stop());
  return events;
}

const append = (db: Database, events: EventLog) =>
  db.transaction((tx) => {
    const data = create(SessionLiveEventSchema, { sessionId: subject });
    return events.append(tx, { accountId, subject }, SessionLiveEventSchema, data);
  });

const idsIn = async (db: Database) => {
  const rows = await db.sql.selectFrom("events").select("id").orderBy("position").execute();
  return rows.map(({ id }) => id);
};

/** Takes events for the same consumer before and after the move. */
async function consume(events: EventLog, limit: number): Promise<string[]> {
  const taken: string[] = [];
  await events.consume("moving", limit, async (_tx, batch) => {
    taken.push(...batch.map(({ id }) => id));
  });
  return taken;
}

/** Writes ten events, of which a consumer takes four. Uses many more transaction IDs than the target cluster. */
async function fill(db: Database): Promise<void> {
  await sql`do $$ begin
    create temporary table burnt (n int);
    for n in 1..5000 loop
      -- A transaction within the transaction, with an identifier of its own.
      begin insert into burnt values (n); exception when division_by_zero then null; end;
    end loop;
  end $$`.execute(db.sql);
  await db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  const events = startLog(db);
  for (let count = 0; count < 10; count += 1) await append(db, events);
  const unnumbered = db.sql.selectFrom("events").select("id").where("number", "is", null);
  await expect.poll(() => unnumbered.execute(), { timeout: 10_000 }).toEqual([]);
  expect(await consume(events, 4)).toEqual((await idsIn(db)).slice(0, 4));
}

/** Expects that streams and consumers resume at their position, and receive old and new events. */
async function expectToGoOn(db: Database): Promise<void> {
  const events = startLog(db);
  const stop = new AbortController();
  const after = (await idsIn(db))[2];
  const watching = await events.watch({ accountId, subject, after, signal: stop.signal });
  await append(db, events);
  const all = await idsIn(db);
  const seen: (string | undefined)[] = [];
  for await (const { id } of watching) if (seen.push(id) === 8) stop.abort();
  expect(seen).toEqual(all.slice(3));
  expect(await consume(events, 100)).toEqual(all.slice(4));
}

test("continues in another PostgreSQL restored from a dump", async () => {
  await using from = await startDebianPostgres();
  await using to = await startDebianPostgres();
  const old = open(from.url);
  await old.migrate(migrations);
  await fill(old);
  const dump = await from.client("pg_dump", "postgres");
  await writeFile(join(to.directory, "dump.sql"), dump);
  await to.client("psql", "-v", "ON_ERROR_STOP=1", "-q", "-f", join(to.directory, "dump.sql"), "postgres");
  const moved = open(to.url);
  await moved.migrate(migrations);
  await expectToGoOn(moved);
}, 90_000);

/** Writes values that a copy might damage: bytes, non-ASCII JSON, and an integer beyond 2^53. */
async function fillProfile(db: Database, bytes: Buffer): Promise<void> {
  await sql`insert into profiles (id, account_id, name, labels, store_id, size_bytes)
    values ('pro_1', ${accountId}, 'p', ${JSON.stringify({ ä: "\\" })}, 'st_1', ${2 ** 53 + 2})`.execute(db.sql);
  await sql`insert into profile_stores (id, profile_id, data_key) values ('st_1', 'pro_1', ${bytes})`.execute(db.sql);
  await sql`insert into profile_chunks values ('st_1', 0, ${bytes})`.execute(db.sql);
}

/** Returns the rows of some tables as text. */
async function textOf(db: Database): Promise<unknown[]> {
  const tables = ["accounts", "events", "profiles", "profile_chunks"];
  const read = (name: string) =>
    sql<{ text: string }>`select t::text as text from ${sql.table(name)} t`.execute(db.sql);
  return (await Promise.all(tables.map(read))).map(({ rows }) => rows);
}

test("continues in a PostgreSQL copied from the embedded one", async () => {
  const embedded = await startOwnDatabase();
  onTestFinished(() => embedded[Symbol.asyncDispose]());
  await using to = await startDebianPostgres();
  await fill(embedded.db);
  await fillProfile(embedded.db, randomBytes(256 * 1_024));
  const before = await textOf(embedded.db);
  await embedded.postgres.stop();

  const copy = () => {
    const env = { ...process.env, DATA_DIR: embedded.directory };
    const options = { env, encoding: "utf8", timeout: 60_000 } as const;
    return spawnSync(process.execPath, ["tools/admin.ts", "copy-database", "--to", to.url], options);
  };
  expect(copy()).toMatchObject({ status: 0, stderr: "", stdout: expect.stringContaining("SECRETS_KEYS") });
  const moved = open(to.url);
  expect(await textOf(moved)).toEqual(before);
  const again = { status: 1, stdout: "", stderr: expect.stringContaining("--to accepts an empty database") };
  expect(copy()).toMatchObject(again);
  await expectToGoOn(moved);
}, 90_000);

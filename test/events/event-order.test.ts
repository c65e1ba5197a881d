import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createEventLog, type EventLog } from "../../src/events/event-log.ts";
import { readEvents, readLastNumber, type StoredEvent } from "../../src/events/store.ts";
import { SessionFailedEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { openDatabase, type Tx } from "../../src/platform/postgres/database.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");
const subjects = ["a", "b", "c", "d", "e"];
/** Writers per gateway, and transactions per writer. */
const writersEach = 3;
const transactionsEach = 30;
let database: TestDatabase;

beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  await sql`create table counters (subject text primary key, count int not null default 0)`.execute(database.db.sql);
  for (const subject of subjects) await sql`insert into counters values (${subject})`.execute(database.db.sql);
});
afterAll(() => database[Symbol.asyncDispose]());

const chance = (probability: number) => Math.random() < probability;
const shortly = () => sleep(Math.random() * 8);
const pick = () => subjects[Math.floor(Math.random() * subjects.length)] ?? "a";

/** Increments a subject's counter and appends an event, with the row locked until the commit, like sessions do. */
async function countUp(events: EventLog, tx: Tx, subject: string): Promise<void> {
  const { rows } = await sql<{ count: number }>`
    update counters set count = count + 1 where subject = ${subject} returning count`.execute(tx.sql);
  const detail = String(rows[0]?.count);
  const data = create(SessionFailedEventSchema, { sessionId: subject, detail });
  await events.append(tx, { accountId, subject }, SessionFailedEventSchema, data);
}

/** Writes to one or two subjects per transaction, at random speed, and rolls back some transactions. */
async function write(events: EventLog): Promise<void> {
  const gone = new Error("taken back");
  for (let count = 0; count < transactionsEach; count += 1) {
    const work = database.db.transaction(async (tx) => {
      // Transaction IDs and positions are assigned at random times, so neither matches the commit order.
      if (chance(0.5)) await sql`select pg_current_xact_id()`.execute(tx.sql);
      if (chance(0.5)) await shortly();
      for (const subject of new Set([pick(), pick()].sort())) await countUp(events, tx, subject);
      if (chance(0.5)) await shortly();
      if (chance(0.15)) throw gone;
    });
    await work.catch((error: unknown) => {
      if (error !== gone) throw error;
    });
  }
}

/** Returns the counter values of each subject in event order. */
function historyOf(seen: readonly StoredEvent[]) {
  return Object.fromEntries(
    subjects.map((of) => [of, seen.filter(({ subject }) => subject === of).map(({ data }) => Number(data.detail))]),
  );
}

test("delivers each event once and in commit order to every reader under concurrency", async () => {
  const others = [openDatabase({ url: database.url }, silentLog, 4), openDatabase({ url: database.url }, silentLog, 4)];
  const gateways = [database.db, ...others].map((db) =>
    createEventLog({ db, bus: createLocalBus(), ids, clock: systemClock, log: silentLog }),
  );
  for (const gateway of gateways) gateway.start();
  const start = await readLastNumber(database.db);
  let isWritten = false;

  const isBehind = async (seen: readonly StoredEvent[]) =>
    !isWritten || (seen.at(-1)?.number ?? start) < (await readLastNumber(database.db));

  const read: StoredEvent[] = [];
  const reading = async () => {
    while (await isBehind(read)) read.push(...(await readEvents(database.db, read.at(-1)?.number ?? start, 7)));
  };
  // Ordered by consumer turn, since gateways are notified of their commits in any order.
  const turns: StoredEvent[][] = [];
  let turn = 0;
  const failure = new Error("a consumer fails");
  const consuming = async (gateway: EventLog) => {
    while (await isBehind(turns.flat())) {
      const work = gateway.consume("order", 5, async (tx, batch) => {
        turn += 1;
        const mine = turn;
        tx.afterCommit(() => {
          turns[mine] = [...batch];
        });
        if (chance(0.2)) throw failure;
      });
      await work.catch((error: unknown) => expect(error).toBe(failure));
      await shortly();
    }
  };
  const readers = [reading(), ...gateways.map(consuming)];

  await Promise.all(gateways.flatMap((gateway) => Array.from({ length: writersEach }, () => write(gateway))));
  const unnumbered = () => sql`select from events where number is null`.execute(database.db.sql);
  await expect.poll(async () => (await unnumbered()).rows.length).toBe(0);
  isWritten = true;
  await Promise.all(readers);
  for (const gateway of gateways) await gateway.stop();
  for (const other of others) await other.close();

  const counters = await sql<{ subject: string; count: number }>`select * from counters`.execute(database.db.sql);
  const counted = counters.rows.map(({ subject, count }) => [subject, Array.from({ length: count }, (_, n) => n + 1)]);
  expect(historyOf(read)).toEqual(Object.fromEntries(counted));
  expect(historyOf(turns.flat())).toEqual(Object.fromEntries(counted));
}, 60_000);

import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineJob, type JobKind } from "../../src/kernel/job-kind.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { clockAt } from "../support/clock-at.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTestClock } from "../support/test-clock.ts";
import { startRunners } from "./runners.ts";

let database: TestDatabase;
let kinds = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  await sql`create table written (number integer, next timestamptz)`.execute(database.db.sql);
}, 60_000);
afterAll(() => database?.[Symbol.asyncDispose]());

type Numbered = { readonly number: number };

/** Defines jobs of a unique kind. */
function kindOf(options: Partial<JobKind<Numbered>>): JobKind<Numbered> {
  kinds += 1;
  return defineJob({
    kind: `queues-${kinds}`,
    width: 8,
    schedule: [],
    timeout: 60_000,
    run: async () => undefined,
    ...options,
  });
}

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Returns the rows that jobs wrote under a number. */
async function written(number: number) {
  const select = sql<{ number: number; next: Date | null }>`select * from written where number = ${number}`;
  return (await select.execute(database.db.sql)).rows;
}

async function countJobs({ kind }: JobKind<Numbered>): Promise<number> {
  const { sql: db } = database.db;
  return (await db.selectFrom("jobs").select("id").where("kind", "=", kind).execute()).length;
}

test("first attempts with the same order key run in order while other keys proceed", async () => {
  const begun: number[] = [];
  const running = new Set<number>();
  const together: number[] = [];
  const gate = Promise.withResolvers<void>();
  const kind = kindOf({
    async run({ data: { number } }) {
      begun.push(number);
      // The first job of one of three keys hangs.
      if (running.has(number % 3)) together.push(number);
      running.add(number % 3);
      await (number === 0 ? gate.promise : new Promise(setImmediate));
      running.delete(number % 3);
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  const jobs = numbersTo(300).map((number) => ({ queue: "one", data: { number }, order: `key ${number % 3}` }));
  await database.db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, jobs));
  await expect.poll(() => begun.length, { timeout: 20_000 }).toBe(201);
  gate.resolve();
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  const orders = [...Map.groupBy(begun, (number) => number % 3).values()];
  expect(orders).toEqual(orders.map((numbers) => numbers.toSorted((a, b) => a - b)));
  expect(begun).toHaveLength(300);
  expect(together).toEqual([]);
}, 60_000);

test("hanging retries do not delay new jobs", async () => {
  const gate = Promise.withResolvers<void>();
  const hanging = new Set<number>();
  const done: number[] = [];
  const kind = kindOf({
    width: 4,
    schedule: [0],
    async run({ data: { number }, attempt }) {
      if (number >= 100) return void done.push(number);
      if (attempt === 1) throw new Error("refused");
      hanging.add(number);
      await gate.promise;
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  const add = (numbers: readonly number[]) =>
    database.db.transaction(async (tx) =>
      runners.jobQueues.enqueueAll(
        tx,
        kind,
        numbers.map((number) => ({ queue: "one", data: { number } })),
      ),
    );
  await add(numbersTo(100));
  await expect.poll(() => hanging.size, { timeout: 20_000 }).toBe(3);
  await add([100, 101, 102]);
  await expect.poll(() => done, { timeout: 20_000 }).toEqual([100, 101, 102]);
  gate.resolve();
}, 60_000);

test("many hanging queues of some owners do not delay other owners", async () => {
  const gate = Promise.withResolvers<void>();
  let hanging = 0;
  const waits: number[] = [];
  const kind = kindOf({
    async run({ queue, data: { number: addedAt } }) {
      if (queue.startsWith("good")) return void waits.push(performance.now() - addedAt);
      hanging += 1;
      await gate.promise;
    },
  });
  await using runners = await startRunners(database.db, [kind], { count: 1 });
  const bad = numbersTo(160).map((n) => ({ queue: `bad ${n}`, owner: `bad owner ${n % 6}`, data: { number: n } }));
  await database.db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, bad));
  for (const number of numbersTo(60)) {
    const job = { queue: `good ${number % 20}`, owner: `owner ${number % 20}`, data: { number: performance.now() } };
    await database.db.transaction(async (tx) => runners.jobQueues.enqueue(tx, kind, job));
    await expect.poll(() => waits.length, { timeout: 20_000, interval: 2 }).toBe(number + 1);
  }
  // These jobs started while most of the hanging ones were queued or running.
  expect(waits.toSorted((a, b) => a - b)[30]).toBeLessThan(500);
  await expect.poll(() => hanging, { timeout: 30_000 }).toBe(160);
  gate.resolve();
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
}, 60_000);

test("a queue with a fast history starts before queues of unknown owners", async () => {
  const gate = Promise.withResolvers<void>();
  let hanging = 0;
  const hangingBefore: number[] = [];
  const kind = kindOf({
    async run({ queue }) {
      if (queue === "good") return void hangingBefore.push(hanging);
      hanging += 1;
      await gate.promise;
    },
  });
  await using runners = await startRunners(database.db, [kind], { count: 1 });
  const addGood = () =>
    database.db.transaction(async (tx) => runners.jobQueues.enqueue(tx, kind, { queue: "good", data: { number: 0 } }));
  await addGood();
  // Waits until the queue is released.
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  const queues = () => database.db.sql.selectFrom("job_queues").select("queue").where("kind", "=", kind.kind).execute();
  await expect.poll(queues, { timeout: 20_000 }).toEqual([]);
  const bad = numbersTo(600).map((number) => ({ queue: `bad ${number}`, data: { number } }));
  // In one commit, so that a poll finds all of them.
  const good = { queue: "good", data: { number: 0 } };
  await database.db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, [...bad, good]));
  await expect.poll(() => hangingBefore.length, { timeout: 20_000 }).toBe(2);
  expect(hangingBefore[1]).toBeLessThan(400);
  await expect.poll(() => hanging, { timeout: 20_000 }).toBe(600);
  gate.resolve();
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
}, 60_000);

test("records of an attempt are committed together with its job or not at all", async () => {
  const now = Date.now();
  const kind = kindOf({
    schedule: [60_000],
    run: async ({ data: { number } }) => ({
      ...(number === 2 ? { failure: new Error("refused") } : {}),
      write: (tx, next) =>
        tx.send({ compile: () => sql`insert into written values (${number}, ${next ?? null})`.compile(tx.sql) }),
    }),
  });
  await using runners = await startRunners(database.db, [kind], { clock: clockAt(() => now) });
  const jobs = [1, 2].map((number) => ({ queue: "one", data: { number } }));
  await database.db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, jobs));
  const expected = [[{ number: 1, next: null }], [{ number: 2, next: new Date(now + 60_000) }]];
  await expect.poll(() => Promise.all([written(1), written(2)]), { timeout: 20_000 }).toEqual(expected);
  expect(await countJobs(kind)).toBe(1);
}, 60_000);

const thrown = (): never => {
  throw new Error("cannot be written");
};
const refusedRow = (tx: Tx): void => {
  tx.send({ compile: () => sql`insert into written values (${"no number"})`.compile(tx.sql) });
};

test.each([
  { what: "whose write throws", settlement: { write: thrown }, complaint: "cannot be written" },
  { what: "whose write PostgreSQL refuses", settlement: { write: refusedRow }, complaint: /invalid input syntax/ },
  { what: "with U+0000 in its failure", settlement: { failure: new Error("\0") }, complaint: /contains U\+0000/ },
])("a job $what fails by its schedule", async ({ settlement, complaint }) => {
  const begun: number[] = [];
  const kind = kindOf({
    width: 1,
    schedule: [60_000],
    async run({ data: { number } }) {
      begun.push(number);
      return number === 1 ? { write: () => undefined, ...settlement } : { write: () => undefined };
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  const { db } = database;
  const jobs = [1, 2].map((number) => ({ queue: "one", data: { number } }));
  await db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, jobs));
  const left = db.sql.selectFrom("jobs").select(["attempts", "complaint", "dead_at"]).where("kind", "=", kind.kind);
  const reason = expect.stringMatching(complaint);
  await expect
    .poll(() => left.execute(), { timeout: 20_000 })
    .toEqual([{ attempts: 1, complaint: reason, dead_at: null }]);
  runners.clock.advance(60_000);
  await expect
    .poll(() => left.execute(), { timeout: 20_000 })
    .toEqual([{ attempts: 2, complaint: reason, dead_at: expect.any(Date) }]);
  expect(begun).toEqual([1, 2, 1]);
});

test("contention does not fail an attempt, whose outcome is stored later", async () => {
  let writes = 0;
  const lockTimeout = sql`do $$ begin raise exception 'lock timeout' using errcode = '55P03'; end $$`;
  const kind = kindOf({
    run: async () => ({
      write(tx) {
        writes += 1;
        if (writes === 1) tx.send({ compile: () => lockTimeout.compile(tx.sql) });
      },
    }),
  });
  await using runners = await startRunners(database.db, [kind], { count: 1 });
  await database.db.transaction(async (tx) =>
    runners.jobQueues.enqueue(tx, kind, { queue: "one", data: { number: 1 } }),
  );
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  expect(writes).toBe(2);
});

test("jobs of a queue are dropped in batches, and a running job then records nothing", async () => {
  const gate = Promise.withResolvers<void>();
  const begun: number[] = [];
  const kind = kindOf({
    width: 1,
    async run({ data: { number } }) {
      begun.push(number);
      await gate.promise;
      return { write: (tx) => tx.send({ compile: () => sql`insert into written values (7)`.compile(tx.sql) }) };
    },
  });
  await using runners = await startRunners(database.db, [kind], { count: 1 });
  const { jobQueues } = runners;
  const jobs = numbersTo(250).map((number) => ({ queue: "one", data: { number } }));
  await database.db.transaction(async (tx) => jobQueues.enqueueAll(tx, kind, jobs));
  await expect.poll(() => begun, { timeout: 20_000 }).toEqual([0]);
  const drop = () => database.db.transaction((tx) => jobQueues.drop(tx, kind, "one", 100));
  expect([await drop(), await drop(), await drop()].map(({ length }) => length)).toEqual([100, 100, 50]);
  gate.resolve();
  const queues = () => database.db.sql.selectFrom("job_queues").select("queue").where("kind", "=", kind.kind).execute();
  await expect.poll(queues, { timeout: 20_000 }).toEqual([]);
  expect(await written(7)).toEqual([]);
}, 60_000);

test("claiming skips queues that are held by other runners", async () => {
  const [held, rounds] = [400, 150];
  const gate = Promise.withResolvers<void>();
  let [hanging, done] = [0, 0];
  const kind = kindOf({
    async run({ queue }) {
      if (queue === "good") done += 1;
      else {
        hanging += 1;
        await gate.promise;
      }
    },
  });
  // A fresh database, so that its statistics cover only this test.
  await using fresh = await startTestDatabase();
  const { db } = fresh;
  // The clock stands still, so that the runner renews no leases, which would read rows too.
  await using runners = await startRunners(db, [kind], { count: 1, clock: createTestClock({ isStill: true }) });
  const bad = numbersTo(held).map((number) => ({ queue: `bad ${number}`, data: { number } }));
  await db.transaction(async (tx) => runners.jobQueues.enqueueAll(tx, kind, bad));
  await expect.poll(() => hanging, { timeout: 20_000 }).toBe(held);
  const readRows = async () => {
    const statistics = sql<{ read: string }>`select pg_stat_force_next_flush(),
      (select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = 'job_queues') as read`;
    return Number((await statistics.execute(db.sql)).rows[0]?.read);
  };
  const before = await readRows();
  for (const number of numbersTo(rounds)) {
    await db.transaction(async (tx) => runners.jobQueues.enqueue(tx, kind, { queue: "good", data: { number } }));
    await expect.poll(() => done, { timeout: 20_000, interval: 5 }).toBe(number + 1);
  }
  expect((await readRows()) - before).toBeLessThan((held * rounds) / 2);
  gate.resolve();
}, 60_000);

import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  claimNamedQueues,
  deleteJobs,
  deleteOldDeadLetters,
  findOldestUnclaimed,
  renewLeases,
} from "../../src/jobs/store.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";

const now = new Date("2026-11-24T12:00:00Z");
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

interface Queue {
  readonly owner?: string;
  readonly due?: Date;
  readonly failures?: number;
  /** Whether a runner holds the queue. */
  readonly isClaimed?: boolean;
}

async function insertQueue(kind: string, queue: string, { owner = queue, due = now, ...more }: Queue = {}) {
  const { failures = 0, isClaimed = false } = more;
  await sql`insert into job_queues (kind, queue, owner, due_at, latest_at, failures, claim, leased_until) values (
    ${kind}, ${queue}, ${owner}, ${due}, ${due}, ${failures}, ${isClaimed ? 1 : null},
    ${isClaimed ? sql`app_now() + interval '1 minute'` : null})`.execute(database.db.sql);
}

test("jobs of one queue are dropped, oldest first", async () => {
  for (const queue of ["a", "b"]) await insertQueue("dropped", queue);
  for (const [queue, number] of [
    ["b", 0],
    ["a", 1],
    ["a", 2],
  ] as const)
    await sql`insert into jobs (kind, queue, data, due_at) values ('dropped', ${queue}, ${{ number }}, ${now})`.execute(
      database.db.sql,
    );
  const drop = (limit: number) => database.db.transaction((tx) => deleteJobs(tx, "dropped", "a", limit));
  expect([await drop(1), await drop(9), await drop(9)]).toEqual([[{ number: 1 }], [{ number: 2 }], []]);
});

test("the oldest due queue is neither failing nor behind a running queue of its owner", async () => {
  const oldest = () => findOldestUnclaimed(database.db, "due", now);
  await insertQueue("due", "failing", { due: minutesAgo(9), failures: 1 });
  await insertQueue("due", "running", { due: minutesAgo(8), owner: "busy", isClaimed: true });
  await insertQueue("due", "behind", { due: minutesAgo(7), owner: "busy" });
  await insertQueue("due", "later", { due: minutesAgo(-1) });
  await insertQueue("other", "due", { due: minutesAgo(6) });
  expect(await oldest()).toBeUndefined();
  await insertQueue("due", "waiting", { due: minutesAgo(5) });
  expect(await oldest()).toEqual(minutesAgo(5));
});

test("a lease lasts for its milliseconds from the claim or the last renewal", async () => {
  const { db } = database;
  await insertQueue("leased", "a");
  const terms = { kind: "leased", now, queues: ["a"], limit: 1, gateway: 0 };
  const [queue] = await claimNamedQueues(db, { ...terms, leaseMs: 60_000 });
  const left = async () => {
    const { rows } = await sql<{ seconds: number }>`
      select extract(epoch from leased_until - app_now())::float as seconds from job_queues where kind = 'leased'`.execute(
      db.sql,
    );
    return rows[0]?.seconds;
  };
  expect(await left()).toBeGreaterThan(30);
  expect(await left()).toBeLessThanOrEqual(60);
  expect(await renewLeases(db, [queue?.claim ?? "", "0"], 600_000)).toEqual([queue?.claim]);
  expect(await left()).toBeGreaterThan(300);
  expect(await left()).toBeLessThanOrEqual(600);
});

test("a dead letter is kept for 30 days", async () => {
  const died = (kind: string, queue: string, days: number) =>
    sql`insert into jobs (kind, queue, data, due_at, dead_at)
      values (${kind}, ${queue}, '{}', ${now}, ${minutesAgo(days * 1_440)})`.execute(database.db.sql);
  await died("dead", "old", 30.01);
  await died("dead", "young", 29.99);
  await died("another", "old", 30.01);
  expect(await deleteOldDeadLetters(database.db, "dead", now, 10)).toBe(1);
  const left = await database.db.sql.selectFrom("jobs").select("queue").where("kind", "=", "dead").execute();
  expect(left).toEqual([{ queue: "young" }]);
});

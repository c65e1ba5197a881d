import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { createGatewayLock } from "../../src/jobs/gateway-lock.ts";
import { createHeldQueues } from "../../src/jobs/held-queues.ts";
import { createJobQueues } from "../../src/jobs/job-queues.ts";
import { runQueue } from "../../src/jobs/queue-run.ts";
import { claimNamedQueues, freeQueues } from "../../src/jobs/store.ts";
import { defineJob, type Job, type JobKind, PermanentFailure } from "../../src/kernel/job-kind.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createLimiter } from "../../src/platform/limiter.ts";
import { createLog } from "../../src/platform/log.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";
import { type Runners, startRunners } from "./runners.ts";

let database: TestDatabase;
let kinds = 0;

beforeAll(async () => {
  database = await startTestDatabase();
}, 60_000);
afterAll(() => database?.[Symbol.asyncDispose]());

type Numbered = { readonly number: number };

/** Defines jobs of a unique kind. */
function kindOf(options: Partial<JobKind<Numbered>>): JobKind<Numbered> {
  kinds += 1;
  return defineJob({
    kind: `test-${kinds}`,
    width: 1,
    schedule: [],
    timeout: 60_000,
    run: async () => undefined,
    ...options,
  });
}

/** Adds a job in its own transaction. */
function add({ jobQueues }: Runners, kind: JobKind<Numbered>, queue: string, number = 0): Promise<void> {
  return database.db.transaction(async (tx) => jobQueues.enqueue(tx, kind, { queue, data: { number } }));
}

async function countJobs({ kind }: JobKind<Numbered>): Promise<number> {
  const { db } = database;
  return (await db.sql.selectFrom("jobs").select("id").where("kind", "=", kind).execute()).length;
}

test("a job runs after its transaction commits and never after a rollback", async () => {
  const done: Job<Numbered>[] = [];
  const kind = kindOf({ run: async (job) => void done.push(job) });
  await using runners = await startRunners(database.db, [kind]);
  const undone = database.db.transaction(async (tx: Tx) => {
    runners.jobQueues.enqueue(tx, kind, { queue: "a", data: { number: 1 } });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  await add(runners, kind, "a", 2);
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  expect(done).toEqual([{ id: expect.any(String), queue: "a", data: { number: 2 }, attempt: 1 }]);
});

test("logs the stack of a thrown error, but only the reason of an expected failure", async () => {
  const lines: { readonly reason?: string; readonly err?: { readonly stack: string } }[] = [];
  const log = createLog("info", { write: (line) => lines.push(JSON.parse(line)) });
  const foreseen = kindOf({ run: async () => ({ failure: new Error("refused"), write: () => undefined }) });
  const hopeless = kindOf({ run: () => Promise.reject<void>(new PermanentFailure("gone for ever")) });
  const thrown = kindOf({ run: () => Promise.reject<void>(new Error("a fault")) });
  await using runners = await startRunners(database.db, [foreseen, hopeless, thrown], { log });
  for (const kind of [foreseen, hopeless, thrown]) await add(runners, kind, "a");
  await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(3);
  expect(lines.map(({ reason, err }) => reason ?? err?.stack).toSorted()).toEqual([
    expect.stringMatching(/^Error: a fault\n {4}at /),
    "gone for ever",
    "refused",
  ]);
});

test("a queue starts jobs in commit order, up to its concurrency", async () => {
  const begun: number[] = [];
  let running = 0;
  let max = 0;
  const kind = kindOf({
    width: 3,
    async run({ data }) {
      begun.push(data.number);
      running += 1;
      max = Math.max(max, running);
      await new Promise(setImmediate);
      running -= 1;
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  const numbers = Array.from({ length: 200 }, (_, index) => index);
  for (const number of numbers) await add(runners, kind, "one", number);
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  expect(begun).toEqual(numbers);
  expect(max).toBeLessThanOrEqual(3);
});

test("the bus wakes the runner long before its next poll", async () => {
  const kind = kindOf({});
  await using runners = await startRunners(database.db, [kind]);
  const begin = performance.now();
  for (let round = 0; round < 40; round += 1) {
    await add(runners, kind, "one");
    await expect.poll(() => countJobs(kind), { interval: 2, timeout: 20_000 }).toBe(0);
  }
  // Polling alone would take up to a second for each job.
  expect(performance.now() - begin).toBeLessThan(20_000);
});

test("polling finds jobs whose notification was lost", async () => {
  const kind = kindOf({});
  await using runners = await startRunners(database.db, [kind], { isListening: false });
  await add(runners, kind, "one");
  runners.clock.advance(1_000);
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
});

test("no job is stranded when many are added while queues are released", async () => {
  const done = new Set<number>();
  const kind = kindOf({ run: async ({ data }) => void done.add(data.number) });
  await using runners = await startRunners(database.db, [kind]);
  const adders = Array.from({ length: 12 }, async (_, adder) => {
    for (let index = 0; index < 100; index += 1) await add(runners, kind, `queue ${index % 3}`, adder * 100 + index);
  });
  await Promise.all(adders);
  await expect.poll(() => done.size, { timeout: 30_000 }).toBe(1_200);
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
  // Empty queues leave no rows.
  const queues = () => database.db.sql.selectFrom("job_queues").select("queue").where("kind", "=", kind.kind).execute();
  await expect.poll(queues, { timeout: 20_000 }).toEqual([]);
}, 90_000);

test("a job added while its queue is released is not stranded", async () => {
  const gate = Promise.withResolvers<void>();
  const begun: number[] = [];
  const kind = kindOf({
    async run({ data }) {
      begun.push(data.number);
      if (data.number === 1) await gate.promise;
    },
  });
  await using runners = await startRunners(database.db, [kind], { count: 1, isListening: false });
  await add(runners, kind, "one", 1);
  runners.clock.advance(1_000);
  await expect.poll(() => begun, { timeout: 20_000 }).toEqual([1]);
  const waits = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%release_queue%'`;
  await database.db.transaction(async (tx) => {
    runners.jobQueues.enqueue(tx, kind, { queue: "one", data: { number: 2 } });
    await sql`select 1`.execute(tx.sql);
    gate.resolve();
    // The queue is released by a runner whose scan began before this job was committed.
    await expect.poll(async () => (await waits.execute(database.db.sql)).rows.length, { timeout: 8_000 }).toBe(1);
  });
  await expect.poll(() => begun, { timeout: 20_000 }).toEqual([1, 2]);
}, 60_000);

test("a failing job is retried by its schedule, does not block others and ends as a dead letter", async () => {
  const attempts: [number, number][] = [];
  const kind = kindOf({
    schedule: [60_000, 300_000],
    async run({ data, attempt }) {
      attempts.push([data.number, attempt]);
      if (data.number === 1) throw new Error("not today");
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  const until = (count: number) => expect.poll(() => attempts.length, { timeout: 20_000 }).toBe(count);
  await add(runners, kind, "one", 1);
  await until(1);
  await add(runners, kind, "one", 2);
  await until(2);
  runners.clock.advance(60_000);
  await until(3);
  // Other jobs do not make the retry run before its scheduled time.
  runners.clock.advance(240_000);
  await add(runners, kind, "one", 3);
  await until(4);
  runners.clock.advance(60_000);
  await until(5);
  expect(attempts).toEqual([
    [1, 1],
    [2, 1],
    [1, 2],
    [3, 1],
    [1, 3],
  ]);
  const row = database.db.sql.selectFrom("jobs").select(["attempts", "complaint", "dead_at"]);
  const dead = () => row.where("kind", "=", kind.kind).execute();
  await expect
    .poll(dead, { timeout: 20_000 })
    .toEqual([{ attempts: 3, complaint: "not today", dead_at: expect.any(Date) }]);
  for (const job of runners.runners[0]?.jobs ?? []) await job.run();
  const metrics = await runners.metrics.metrics();
  expect(metrics).toContain(`pilothouse_jobs_dead_letters{kind="${kind.kind}"} 1`);
  runners.clock.advance(31 * 86_400_000);
  for (const job of runners.runners[0]?.jobs ?? []) await job.run();
  expect(await dead()).toEqual([]);
});

test("a job with a permanent failure becomes a dead letter immediately", async () => {
  const kind = kindOf({
    schedule: [0, 0],
    run: async () => {
      throw new PermanentFailure("no such mailbox");
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  await add(runners, kind, "one");
  const { db } = database;
  const rows = () =>
    db.sql
      .selectFrom("jobs")
      .select(["attempts", "complaint"])
      .where("kind", "=", kind.kind)
      .where("dead_at", "is not", null)
      .execute();
  await expect.poll(rows, { timeout: 20_000 }).toEqual([{ attempts: 1, complaint: "no such mailbox" }]);
});

test("an attempt that times out is aborted and counts as failed", async () => {
  const reasons: string[] = [];
  const kind = kindOf({
    timeout: 50,
    run: (_, signal) =>
      new Promise<void>((_resolve) => signal.addEventListener("abort", () => reasons.push(signal.reason.message))),
  });
  await using runners = await startRunners(database.db, [kind]);
  await add(runners, kind, "one");
  await expect.poll(() => reasons, { timeout: 20_000 }).toEqual(["took longer than 50 ms"]);
});

test("many failing and hanging queues do not delay a working queue", async () => {
  const gate = Promise.withResolvers<void>();
  const failures = new Map<string, number>();
  const good = new Set<number>();
  const kind = kindOf({
    schedule: [0, 0, 0, 0],
    async run({ queue, data, attempt }) {
      if (queue.startsWith("good")) return void good.add(data.number);
      // Three failures mark the queue as failing. The job hangs after that.
      failures.set(queue, attempt);
      if (attempt > 3) await gate.promise;
      throw new Error("refused");
    },
  });
  await using runners = await startRunners(database.db, [kind]);
  for (let queue = 0; queue < 80; queue += 1) await add(runners, kind, `bad ${queue}`);
  const failing = () => [...failures.values()].filter((attempt) => attempt >= 3).length;
  await expect.poll(failing, { timeout: 30_000 }).toBe(80);
  for (let queue = 0; queue < 50; queue += 1) await add(runners, kind, `good ${queue}`, queue);
  await expect.poll(() => good.size, { timeout: 20_000 }).toBe(50);
  gate.resolve();
}, 90_000);

test("a stopped runner aborts its jobs and releases them to other runners immediately", async () => {
  const queues: string[] = [];
  const signals: AbortSignal[] = [];
  const kind = kindOf({
    async run({ queue }, signal) {
      queues.push(queue);
      signals.push(signal);
      if (queues.length === 1)
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const first = await startRunners(database.db, [kind], { count: 1 });
  await add(first, kind, "one");
  await expect.poll(() => queues.length, { timeout: 20_000 }).toBe(1);
  const stopped = first.runners[0]?.stop?.();
  first.clock.advance(3_000);
  await new Promise(setImmediate);
  expect(signals[0]?.aborted).toBe(false);
  first.clock.advance(2_000);
  await expect.poll(() => signals[0]?.aborted, { interval: 10, timeout: 5_000 }).toBe(true);
  await stopped;
  await first[Symbol.asyncDispose]();
  await using _second = await startRunners(database.db, [kind], { count: 1, clock: first.clock });
  await expect.poll(() => countJobs(kind), { timeout: 5_000 }).toBe(0);
  expect(queues).toEqual(["one", "one"]);
}, 60_000);

test("finished and abandoned jobs are not scanned again", async () => {
  // Connections report scan statistics when they are used again, which is too late in a shared database.
  await using fresh = await startTestDatabase();
  const { sql: db } = fresh.db;
  const done = new Set<number>();
  const kind = kindOf({ run: async ({ data }) => void done.add(data.number) });
  await sql`insert into jobs (kind, queue, data, due_at, dead_at)
    select ${kind.kind}, 'queue ' || n % 1000, '{}', now(), now() from generate_series(1, 100000) as n`.execute(db);
  await sql`insert into job_queues (kind, queue, due_at, latest_at, failures)
    select ${kind.kind}, 'queue ' || n, now() + interval '1 day', now(), 3 from generate_series(1, 10000) as n`.execute(
    db,
  );
  await sql`analyze jobs, job_queues`.execute(db);
  const readScans = async () => {
    const { rows } = await sql<{ whole: string; indexed: string }>`
      select sum(seq_scan) as whole, sum(idx_scan) as indexed from pg_stat_user_tables
      where relname in ('jobs', 'job_queues')`.execute(db);
    return { whole: Number(rows[0]?.whole), indexed: Number(rows[0]?.indexed) };
  };
  // Scan statistics are reported within a second after a connection is used again.
  const before = await readScans();
  await using runners = await startRunners(fresh.db, [kind]);
  const indexed = async () => (await readScans()).indexed;
  for (let number = 0; (await indexed()) < before.indexed + 200; number += 1) {
    const job = { queue: `queue ${number % 20}`, data: { number } };
    await fresh.db.transaction(async (tx) => runners.jobQueues.enqueue(tx, kind, job));
    await expect.poll(() => done.size, { interval: 10, timeout: 20_000 }).toBe(number + 1);
  }
  expect((await readScans()).whole).toBe(before.whole);
}, 60_000);

test("a failure is not recorded on a queue that another gateway has claimed since", async () => {
  const barriers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const attempts: number[] = [];
  const kind = kindOf({
    schedule: [60_000],
    async run({ attempt }) {
      const isFirst = attempts.push(attempt) === 1;
      await barriers[isFirst ? 0 : 1]?.promise;
      if (isFirst) throw new Error("too late");
    },
  });
  await using runners = await startRunners(database.db, [kind], { count: 1 });
  await add(runners, kind, "one");
  await expect.poll(() => attempts, { timeout: 20_000 }).toEqual([1]);
  const { sql: db } = database.db;
  const setLane = (queue: { claim: string; leased_until?: Date }) =>
    db.updateTable("job_queues").set(queue).where("kind", "=", kind.kind).execute();
  await setLane({ claim: "-1" });
  barriers[0]?.resolve();
  const ended = () => runners.metrics.getSingleMetricAsString("pilothouse_jobs_attempts_total");
  await expect.poll(ended, { timeout: 20_000 }).toMatch(/outcome="(failed|lost)"} 1/);
  const job = db.selectFrom("jobs").select(["attempts", "complaint"]).where("kind", "=", kind.kind);
  expect(await job.execute()).toEqual([{ attempts: 0, complaint: null }]);
  const queue = db.selectFrom("job_queues").select(["claim", "failures"]).where("kind", "=", kind.kind);
  expect(await queue.execute()).toEqual([{ claim: "-1", failures: 0 }]);
  // After the other gateway's lease expires, the next attempt counts as the first and starts immediately.
  await setLane({ claim: "-1", leased_until: new Date(0) });
  await expect.poll(() => attempts, { timeout: 20_000 }).toEqual([1, 1]);
  barriers[1]?.resolve();
  await expect.poll(() => countJobs(kind), { timeout: 20_000 }).toBe(0);
});

test("releases the queues of a gateway whose PostgreSQL lock is released, before their leases end", async () => {
  const { db, url } = database;
  const kind = kindOf({});
  const lock = createGatewayLock({ url }, silentLog);
  await lock.start?.();
  const claims = { locked: lock.gateway(), unlocked: 0 };
  await db.transaction(async (tx) =>
    createJobQueues({ bus: createLocalBus(), clock: systemClock }).enqueueAll(
      tx,
      kind,
      Object.keys(claims).map((queue) => ({ queue, data: { number: 1 } })),
    ),
  );
  for (const [queue, gateway] of Object.entries(claims)) {
    const terms = { kind: kind.kind, now: new Date(), queues: [queue], limit: 1, gateway, leaseMs: 3_600_000 };
    expect(await claimNamedQueues(db, terms)).toHaveLength(1);
  }
  const readHeld = async () => {
    await freeQueues(db);
    const held = db.sql.selectFrom("job_queues").select("queue").where("claim", "is not", null);
    return (await held.where("kind", "=", kind.kind).orderBy("queue").execute()).map(({ queue }) => queue);
  };
  expect(await readHeld()).toEqual(["locked", "unlocked"]);
  await lock.stop?.();
  await expect.poll(readHeld).toEqual(["unlocked"]);
});

test("a queue yields its slot after ten seconds even if it has more jobs", async () => {
  const { db } = database;
  const now = performance.now.bind(performance);
  let elapsed = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now() + elapsed);
  onTestFinished(() => void vi.restoreAllMocks());
  const begun: number[] = [];
  const jobKind = kindOf({
    async run({ data }) {
      begun.push(data.number);
      elapsed += 4_000;
    },
  });
  const jobs = [0, 1, 2, 3, 4].map((number) => ({ queue: "a", data: { number } }));
  await db.transaction(async (tx) =>
    createJobQueues({ bus: createLocalBus(), clock: systemClock }).enqueueAll(tx, jobKind, jobs),
  );
  const held = createHeldQueues({ db, clock: systemClock, log: silentLog, gateway: () => 0 });
  const terms = { kind: jobKind.kind, now: new Date(), queues: ["a"], limit: 1, gateway: 0, leaseMs: held.leaseMs };
  for (const queue of await claimNamedQueues(db, terms)) {
    const signals = { closing: new AbortController().signal, stopping: new AbortController().signal };
    const counting = { count: () => undefined, lag: () => undefined, limiter: createLimiter(1) };
    const slot = { owner: "a", kind: "healthy", move: () => true, release: () => undefined } as const;
    const mine = { held: held.add(queue, performance.now()), slot, jobKind };
    await runQueue(mine, { db, clock: systemClock, log: silentLog, ...signals, ...counting });
    held.remove(mine.held);
  }
  expect(begun).toEqual([0, 1, 2]);
});

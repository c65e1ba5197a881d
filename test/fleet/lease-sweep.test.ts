import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { createLeaseSweep } from "../../src/fleet/lease-sweep.ts";
import type { SessionKeeper } from "../../src/fleet/session-keeper.ts";
import {
  countLaunchers,
  countSlots,
  lockCandidate,
  markLostWorkers,
  recentlyLost,
  recordIdleSweep,
} from "../../src/fleet/store.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";
import { moveTime } from "../support/move-time.ts";

let database: TestDatabase;
let ended: string[];

beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const secondsAgo = (seconds: number) => sql<Date>`now() - ${seconds} * interval '1 second'`;

beforeEach(async () => {
  ended = [];
  const { sql: db } = database.db;
  await db.deleteFrom("workers").execute();
  const worker = { secret_hash: Buffer.alloc(32), address: "127.0.0.1:1", runtimes: ["chromium"], slots: 1 };
  for (const [id, overdueBy] of [
    ["overdue", 1],
    ["alive", -5],
  ] as const) {
    await db
      .insertInto("workers")
      .values({ id, ...worker, boot_id: id, isolation: "flags" })
      .execute();
    await db
      .insertInto("worker_leases")
      .values({ worker_id: id, incarnation: 1, lease_until: secondsAgo(overdueBy) })
      .execute();
  }
});

const keeper: SessionKeeper = {
  endAllOf: async () => 0,
  async endOrphaned(tx) {
    const lost = await recentlyLost(tx).execute();
    return ended.push(...lost.map(({ worker_id }) => worker_id).filter((id) => !ended.includes(id)));
  },
  overdueExist: sql`false`,
  endOverdue: async () => 0,
  apply: async () => undefined,
  unwanted: async () => [],
  settledProfiles: async () => [],
};

function sweepOf(sessions = keeper) {
  return createLeaseSweep({
    db: database.db,
    bus: createLocalBus(),
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics(),
    keeper: sessions,
  });
}

async function lastSweep(seconds: number): Promise<void> {
  await database.db.sql
    .updateTable("lease_sweep")
    .set({ swept_at: secondsAgo(seconds) })
    .execute();
}

test("the sweep ends the sessions of workers that missed their lease, once", async () => {
  await lastSweep(1);
  await sweepOf().runNow();
  await sweepOf().runNow();
  expect(ended).toEqual(["overdue"]);
});

test("the sweep renews all leases if no sweep ran for more than three seconds", async () => {
  await lastSweep(4);
  const {
    rows: [began],
  } = await sql<{ at: Date }>`select now() as at`.execute(database.db.sql);
  await sweepOf().runNow();
  await sweepOf().runNow();
  expect(ended).toEqual([]);
  const rows = await database.db.sql
    .selectFrom("worker_leases")
    .select([
      "worker_id as id",
      sql<boolean>`lease_until - ${began?.at} between interval '7 s' and interval '1 minute'`.as("renewed"),
    ])
    .orderBy("worker_id")
    .execute();
  expect(rows).toEqual([
    { id: "alive", renewed: true },
    { id: "overdue", renewed: true },
  ]);
});

test("a sweep has something to do after a gap, or if sessions are overdue", async () => {
  await database.db.sql.deleteFrom("workers").where("id", "=", "overdue").execute();
  const isIdle = (overdueExist: boolean) => recordIdleSweep(database.db, sql`${overdueExist}::boolean`);
  await lastSweep(4);
  expect(await isIdle(false)).toBe(false);
  await lastSweep(1);
  expect([await isIdle(true), await isIdle(false)]).toEqual([false, true]);
});

test("the sweep does not mistake its own duration of more than three seconds for an outage", async () => {
  await lastSweep(1);
  const slow = { ...keeper, endOverdue: (tx: Tx) => moveTime(tx, 3_200).then(() => 0) };
  onTestFinished(() => moveTime(database.db, 0));
  await sweepOf(slow).runNow();
  await database.db.sql
    .updateTable("worker_leases")
    .set({ lease_until: secondsAgo(1) })
    .where("worker_id", "=", "alive")
    .execute();
  await sweepOf().runNow();
  expect(ended).toEqual(["overdue", "alive"]);
});

test("the sweep is skipped while another gateway runs it", async () => {
  await lastSweep(1);
  await database.db.transaction(async (tx) => {
    await tx.sql.selectFrom("lease_sweep").selectAll().forUpdate().execute();
    await sweepOf().runNow();
  });
  expect(ended).toEqual([]);
});

test("a worker that drains, is closed or has no lease is not placed on once it is locked", async () => {
  const isCandidate = (id: string) =>
    database.db.transaction(async (tx) => (await lockCandidate(tx, id)) !== undefined);
  expect([await isCandidate("alive"), await isCandidate("overdue")]).toEqual([true, false]);
  for (const change of [{ draining: true }, { draining: false, closed_by: "memory" }]) {
    await database.db.sql.updateTable("worker_leases").set(change).where("worker_id", "=", "alive").execute();
    expect(await isCandidate("alive")).toBe(false);
  }
});

test("a worker is marked as lost once, and its slots do not count", async () => {
  const mark = () => database.db.transaction(markLostWorkers);
  expect(await countSlots(database.db)).toEqual({ held: 0, free: 1, closed: 0 });
  expect(await countLaunchers(database.db)).toMatchObject({ workers: 1, failing: 0 });
  expect([await mark(), await mark()]).toEqual([["overdue"], []]);
  await database.db.sql.updateTable("worker_leases").set({ draining: true }).execute();
  expect(await countSlots(database.db)).toEqual({ held: 0, free: 0, closed: 1 });
  expect(await countLaunchers(database.db)).toMatchObject({ workers: 0 });
});

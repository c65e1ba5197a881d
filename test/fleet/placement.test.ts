import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../src/fleet/placement.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Adds one live worker and many lost ones. */
async function addWorkers(lost: number): Promise<void> {
  const common = { secret_hash: Buffer.alloc(32), address: "127.0.0.1:1", runtimes: ["chromium"], slots: 1 };
  const workers = Array.from({ length: lost + 1 }, (_, index) => ({
    id: `worker-${index}`,
    ...common,
    isolation: "flags",
    boot_id: `boot-${index}`,
  }));
  const leases = workers.map(({ id }, index) => ({
    worker_id: id,
    incarnation: 1,
    lease_until: sql<Date>`now() + interval '1 hour'`,
    lost_at: index === 0 ? null : new Date(),
  }));
  await database.db.sql.insertInto("workers").values(workers).execute();
  await database.db.sql.insertInto("worker_leases").values(leases).execute();
  await sql`analyze workers, worker_leases`.execute(database.db.sql);
}

/** Counts the rows of workers that a transaction has read so far. */
async function countRead(tx: Tx): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select sum(seq_tup_read + idx_tup_fetch)::int as read from pg_stat_xact_user_tables where relname in ('workers', 'worker_leases')
  `.execute(tx.sql);
  return rows[0]?.read ?? Number.NaN;
}

test("placement does not read the rows of lost workers", async () => {
  await addWorkers(2_000);
  const [placement, read] = await database.db.transaction(async (tx) => {
    const before = await countRead(tx);
    const placed = await place(tx, { runtime: "chromium" });
    return [placed, (await countRead(tx)) - before];
  });
  expect(placement).toMatchObject({ kind: "placed", worker: { id: "worker-0" } });
  // The live worker's row is found, locked and read again.
  expect(read).toBeLessThan(10);
});

test("placement selects the worker with the smallest share of used slots", async () => {
  await using running = await startSessionsApp();
  const [large, small] = [await running.worker({ slots: 6 }), await running.worker({ slots: 2 })];
  const call = await running.caller();
  for (let count = 0; count < 4; count += 1)
    await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  expect([large.held.size, small.held.size]).toEqual([3, 1]);
});

test("placement avoids a worker whose launches fail while there are others", async () => {
  await using running = await startSessionsApp({ QUEUE_MS: "0" });
  const [failing, sound] = [await running.worker({ slots: 4 }), await running.worker({ slots: 1 })];
  failing.launchesFail = true;
  await failing.heartbeat();
  const call = await running.caller();
  const begin = () => running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  await begin();
  expect([failing.held.size, sound.held.size]).toEqual([0, 1]);
  // The session waits for the healthy worker instead of failing.
  await expect(begin()).rejects.toMatchObject({ slug: "capacity-unavailable" });
  sound.fallSilent();
  await sound.heartbeat({ draining: true });
  await begin();
  expect([failing.held.size, sound.held.size]).toEqual([1, 1]);
});

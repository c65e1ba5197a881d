import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;
let worker: FakeWorker;
let held: string;
let free: string;

beforeAll(async () => {
  running = await startSessionsApp();
  worker = await running.worker({ slots: 2 });
  const call = await running.caller();
  const start = async () => (await running.sessions.create(call(), create(CreateSessionRequestSchema, {}))).id;
  [held, free] = [await start(), await start()];
});
afterAll(() => running[Symbol.asyncDispose]());

/** Runs a function while a transaction, like that of a stopped gateway, locks the worker and one of its sessions. */
async function whileHeld(run: (tx: Tx) => Promise<void>): Promise<void> {
  await running.app.db.transaction(async (tx) => {
    await tx.sql.selectFrom("workers").select("id").forNoKeyUpdate().execute();
    await tx.sql.selectFrom("sessions").select("id").where("id", "=", held).forUpdate().execute();
    await run(tx);
  });
}

const pollOptions = { timeout: 15_000 };

/** PostgreSQL ends our transactions after 3 s without a statement. */
const keepOpen = (tx: Tx) => tx.named({ name: "test-keep-open", text: "select 1" }, []);

const statusOf = async (id: string) =>
  (await running.app.db.sql.selectFrom("sessions").select("status").where("id", "=", id).executeTakeFirst())?.status;

const times = async () =>
  await running.app.db.sql
    .selectFrom(["worker_leases", "lease_sweep"])
    .select(["heard_at", "swept_at"])
    .executeTakeFirstOrThrow();

test("a transaction that holds a worker, a session and its account delays neither heartbeats nor sweeps", async () => {
  const before = await times();
  await whileHeld(async (tx) => {
    await tx.sql.selectFrom("accounts").select("id").forUpdate().execute();
    await worker.heartbeat();
    expect((await times()).heard_at?.getTime()).toBeGreaterThan(before.heard_at?.getTime() ?? 0);
    const sweptAt = async (): Promise<number> => {
      await keepOpen(tx);
      return (await times()).swept_at.getTime();
    };
    await expect.poll(sweptAt, pollOptions).toBeGreaterThan(before.swept_at.getTime());
  });
  expect([await statusOf(held), await statusOf(free)]).toEqual(["live", "live"]);
});

test("a session that is held when its worker is lost is ended by a later sweep", async () => {
  worker.fallSilent();
  await whileHeld(async (tx) => {
    // Repeated, because on a busy machine a late sweep renews all leases.
    const expireAndLook = async () => {
      await keepOpen(tx);
      await running.app.db.sql
        .updateTable("worker_leases")
        .set({ lease_until: new Date(0) })
        .execute();
      return statusOf(free);
    };
    await expect.poll(expireAndLook, pollOptions).toBe("errored");
    expect(await statusOf(held)).toBe("live");
  });
  await expect.poll(() => statusOf(held), pollOptions).toBe("errored");
  const reasons = await running.app.db.sql.selectFrom("sessions").select(["ended_reason", "slot_held"]).execute();
  expect(reasons).toEqual(Array(2).fill({ ended_reason: "worker_lost", slot_held: false }));
});

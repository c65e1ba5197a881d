import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createSessionMetrics } from "../../src/sessions/session-metrics.ts";
import { createSessionKeeper } from "../../src/sessions/session-sweep.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;

beforeAll(async () => {
  running = await startSessionsApp();
});

afterAll(() => running[Symbol.asyncDispose]());

test("the gateway forgets after a minute without requests that a worker no longer has a session", async () => {
  const { app, sessions } = running;
  const { db } = app;
  const call = await running.caller();
  const open = async () => {
    const worker = await running.worker({ slots: 1 });
    const { id } = await sessions.create(call(), create(CreateSessionRequestSchema, {}));
    expect([...worker.held.keys()]).toEqual([id]);
    return { id, worker };
  };
  const [first, second] = [await open(), await open()];
  const keeper = createSessionKeeper({ ...app, sessionMetrics: createSessionMetrics(createMetrics()) });
  const miss = ({ worker }: { worker: FakeWorker }) => keeper.unwanted(worker.id, []);
  const row = db.sql.selectFrom("sessions").select(["status", "ended_reason"]).where("id", "=", first.id);
  await miss(first);
  running.pass(61_000);
  await miss(second);
  await miss(first);
  expect(await row.executeTakeFirst()).toEqual({ status: "live", ended_reason: null });
  running.pass(5_000);
  await miss(first);
  expect(await row.executeTakeFirst()).toEqual({ status: "live", ended_reason: null });
  running.pass(2_000);
  await miss(first);
  expect(await row.executeTakeFirst()).toMatchObject({ ended_reason: "crashed" });
});

test("the gateway forgets a worker that has not called for ten minutes", async () => {
  const { db } = running.app;
  const worker = await running.worker();
  worker.fallSilent();
  await worker.heartbeat();
  const secretHash = Buffer.alloc(32);
  await db.sql.updateTable("workers").set({ secret_hash: secretHash }).where("id", "=", worker.id).execute();
  // The worker's secret is still cached in memory.
  await worker.heartbeat();
  running.pass(11 * 60_000);
  await running.worker();
  await expect(worker.heartbeat()).rejects.toMatchObject({ details: expect.stringContaining("unknown worker") });
});

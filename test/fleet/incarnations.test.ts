import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CreateSessionRequestSchema, SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { statusToFailure } from "../../src/platform/grpc/grpc-failure.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;
let worker: FakeWorker;
let sessionId: string;

/** Starts a worker twice. The first process still runs with the same secret, and a session runs on the second. */
beforeAll(async () => {
  running = await startSessionsApp();
  // Otherwise the first sweep after a start renews all leases.
  await running.app.db.sql.updateTable("lease_sweep").set({ swept_at: new Date() }).execute();
  worker = await running.worker();
  worker.fallSilent();
  await worker.register({ bootId: "the second start" });
  await worker.heartbeat();
  const call = await running.caller();
  sessionId = (await running.sessions.create(call(), create(CreateSessionRequestSchema, {}))).id;
});
afterAll(() => running[Symbol.asyncDispose]());

/** Calls as the first process of the worker. */
async function asFirstStart(call: () => Promise<unknown>): Promise<void> {
  const { incarnation } = worker;
  worker.incarnation = incarnation - 1n;
  await call().finally(() => {
    worker.incarnation = incarnation;
  });
}

const superseded = { details: expect.stringContaining("the worker has been restarted") };

const findSession = () =>
  running.app.db.sql.selectFrom("sessions").select(["status", "slot_held"]).where("id", "=", sessionId).execute();

test("a report of an earlier incarnation is refused and ends no session of the later one", async () => {
  const value = { reason: SessionEndedReason.CRASHED, detail: "gone" };
  const ended = { sessionId, placementEpoch: 1n, sequence: 1n, event: { case: "ended", value } } as const;
  await expect(asFirstStart(() => worker.report(ended))).rejects.toMatchObject(superseded);
  expect(await findSession()).toEqual([{ status: "live", slot_held: true }]);
});

test("a heartbeat of an earlier incarnation is refused and changes neither lease nor state of the worker", async () => {
  const findWorker = () =>
    running.app.db.sql
      .selectFrom("worker_leases")
      .select(["incarnation", "lease_until", "heard_at", "draining", "closed_by"])
      .where("worker_id", "=", worker.id)
      .executeTakeFirstOrThrow();
  const before = await findWorker();
  const stale = asFirstStart(() => worker.heartbeat({ draining: true, closedBy: "memory" }));
  await expect(stale).rejects.toMatchObject(superseded);
  expect(before).toMatchObject({ incarnation: "2", draining: false, closed_by: null });
  expect(await findWorker()).toEqual(before);
  await worker.heartbeat({ draining: true });
  expect(await findWorker()).toMatchObject({ incarnation: "2", draining: true });
});

test("a registration with a wrong token is refused as forbidden", async () => {
  const refused = await worker.register({ workerToken: "another token" }).catch(statusToFailure);
  expect(refused).toMatchObject({ slug: "forbidden", detail: expect.stringContaining("WORKER_TOKEN") });
});

import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CreateSessionRequestSchema,
  GetSessionStateRequestSchema,
  SessionEndedReason,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;

beforeAll(async () => {
  running = await startSessionsApp();
});

afterAll(() => running[Symbol.asyncDispose]());

const rowOf = (id: string) =>
  running.app.db.sql.selectFrom("sessions").select(["status", "ended_reason"]).where("id", "=", id).executeTakeFirst();

test("a report that can never be applied is skipped, and those around it are applied", async () => {
  const { sessions } = running;
  const worker = await running.worker();
  const call = await running.caller();
  const begin = () => sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const [one, two, three] = [await begin(), await begin(), await begin()];
  const ended = (sessionId: string, sequence: bigint, detail: string) => {
    worker.held.delete(sessionId);
    const event = { case: "ended", value: { reason: SessionEndedReason.CRASHED, detail } } as const;
    return { sessionId, placementEpoch: 1n, sequence, event };
  };
  // PostgreSQL stores any text except this character.
  await worker.report(ended(one.id, 1n, "gone"), ended(two.id, 2n, "a \u0000"), ended(three.id, 3n, "gone"));
  const crashed = { status: "errored", ended_reason: "crashed" };
  expect([await rowOf(one.id), await rowOf(three.id)]).toEqual([crashed, crashed]);
  // The skipped report was the end of a session. The session's absence in heartbeats reveals its end.
  await worker.heartbeat();
  running.pass(6_000);
  await worker.heartbeat();
  await expect.poll(() => rowOf(two.id)).toEqual(crashed);
}, 40_000);

test("a worker that was replaced at its address counts as lost instead of failing requests as forbidden", async () => {
  const { sessions } = running;
  const call = await running.caller();
  const gone = await running.worker({ slots: 100 });
  const other = await running.worker({ slots: 4 });
  const begin = () => sessions.create(call(), create(CreateSessionRequestSchema, {}));
  while (gone.held.size === 0 || other.held.size === 0) await begin();
  const [id = ""] = gone.held.keys();
  gone.fallSilent();
  // The process at the address has another secret.
  gone.secret = "another worker's";
  // The row of the lost worker still has its lease and is the least loaded.
  const created = await begin();
  expect(gone.held.has(created.id)).toBe(false);
  const command = sessions.getState(call(), create(GetSessionStateRequestSchema, { id }));
  await expect(command).rejects.toMatchObject({ slug: expect.stringMatching(/^(driver-error|session-destroyed)$/) });
}, 40_000);

import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TimeoutsRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CreateSessionRequestSchema, UpdateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { requestOf } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;
const received: TimeoutsRequest[] = [];

beforeAll(async () => {
  running = await startSessionsApp();
  await running.worker({
    slots: 20,
    handlers: {
      setTimeouts: async (_call, command) => {
        received.push(requestOf(fleetCommands.setTimeouts, command));
        return create(EmptySchema);
      },
    },
  });
});
afterAll(() => running[Symbol.asyncDispose]());

type Caller = Awaited<ReturnType<SessionsApp["caller"]>>;

async function launch(call: Caller, { sessions }: SessionsApp = running): Promise<string> {
  return (await sessions.create(call(), create(CreateSessionRequestSchema, { timeoutSeconds: 120 }))).id;
}

const update = (call: Caller, id: string, fields: object, { sessions }: SessionsApp = running) => {
  const paths = Object.keys(fields).map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  return sessions.update(call(), create(UpdateSessionRequestSchema, { id, ...fields, updateMask: { paths } }));
};

test("sends the worker each change with a rising number, and appends session.updated", async () => {
  const call = await running.caller();
  const id = await launch(call);
  received.length = 0;
  await update(call, id, { timeoutSeconds: 600 });
  await update(call, id, { labels: { a: "b" } });
  await update(call, id, { idleTimeoutSeconds: 50 });
  const [first, second] = received.filter(({ number }) => number > 0);
  expect(received.filter(({ number }) => number > 0)).toHaveLength(2);
  expect(first).toMatchObject({ number: 1 });
  expect(first?.idleTimeoutSeconds).toBeUndefined();
  expect(first?.remainingMs).toBeGreaterThan(500_000);
  expect(first?.remainingMs).toBeLessThanOrEqual(600_000);
  expect(second).toMatchObject({ number: 3, idleTimeoutSeconds: 50 });
  const events = await running.app.db.sql
    .selectFrom("events")
    .select("data")
    .where("subject", "=", id)
    .where("type", "=", "session.updated")
    .orderBy("position")
    .execute();
  expect(events.at(-1)?.data).toMatchObject({ session_id: id, idle_timeout_seconds: 50, labels: { a: "b" } });
});

test("changes nothing if the worker of an earlier release does not know the command", async () => {
  await using earlier = await startSessionsApp();
  await earlier.worker({ lacks: ["setTimeouts"] });
  const call = await earlier.caller();
  const id = await launch(call, earlier);
  const beganAt = performance.now();
  await expect(update(call, id, { timeoutSeconds: 600 }, earlier)).rejects.toMatchObject({
    slug: "driver-not-integrated",
    detail: expect.stringContaining("previous release"),
  });
  expect(performance.now() - beganAt).toBeLessThan(5_000);
  const row = earlier.app.db.sql.selectFrom("sessions").select("timeouts_number").where("id", "=", id);
  expect((await row.executeTakeFirstOrThrow()).timeouts_number).toBe(0);
  expect((await update(call, id, { labels: { a: "b" } }, earlier)).labels).toEqual({ a: "b" });
});

test("refuses times beyond the tier, in the past and of others", async () => {
  const call = await running.caller("personal");
  const stranger = await running.caller();
  const id = await launch(call);
  const beyond = { slug: "validation-failed", errors: [{ field: "timeout_seconds" }] };
  await expect(update(call, id, { timeoutSeconds: 86_400 })).rejects.toMatchObject(beyond);
  await expect(update(stranger, id, { labels: {} })).rejects.toMatchObject({ slug: "not-found" });
  await expect(update(stranger, id, { timeoutSeconds: 60 })).rejects.toMatchObject({ slug: "not-found" });
  const { db } = running.app;
  const liveAt = new Date(Date.now() - 90_000);
  await db.sql.updateTable("sessions").set({ live_at: liveAt }).where("id", "=", id).execute();
  const past = { ...beyond, errors: [{ message: expect.stringMatching(/^must be more: .* live for 9\d seconds$/) }] };
  await expect(update(call, id, { timeoutSeconds: 60 })).rejects.toMatchObject(past);
});

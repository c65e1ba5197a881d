import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { type Command, type LaunchRequest, ProfileChunkSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { CreateProfileRequestSchema, GetProfileRequestSchema } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import {
  CreateCdpUrlRequestSchema,
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  WatchSessionRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createProfileService } from "../../src/profiles/service.ts";
import { createSessionMetrics } from "../../src/sessions/session-metrics.ts";
import { createSessionKeeper } from "../../src/sessions/session-sweep.ts";
import { type FakeWorker, requestOf } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;
let worker: FakeWorker;
/** The last create request that the worker received. */
let launch: (LaunchRequest & Pick<Command, "context">) | undefined;
/** Hook of the worker while a profile's store arrives. */
let whileRestoring = (): void => undefined;
let watches = 0;
let goOn = Promise.withResolvers<void>();

beforeAll(async () => {
  running = await startSessionsApp();
  worker = await running.worker({
    handlers: {
      create: async (_call, command) => {
        const { context } = command;
        launch = { ...requestOf(fleetCommands.create, command), context };
        worker.held.set(context?.sessionId ?? "", context?.placementEpoch ?? 0n);
        return create(EmptySchema);
      },
      putProfile: async (_call, chunks) => {
        for await (const _ of chunks);
        whileRestoring();
        return create(EmptySchema);
      },
      takeProfile: async function* (_call, command) {
        const { profileId } = requestOf(fleetCommands.takeProfile, command);
        yield create(ProfileChunkSchema, { profileId, version: 0n, engine: "chromium" });
        yield create(ProfileChunkSchema, { data: Buffer.alloc(1_000, "store") });
      },
      watch: async function* ({ signal }) {
        watches += 1;
        yield create(EventSchema, { type: "session.console" });
        await goOn.promise;
        yield create(EventSchema, { type: "session.page_opened" });
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    },
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  goOn = Promise.withResolvers();
});

afterAll(() => running[Symbol.asyncDispose]());

test("sends a session's lifetime to its worker independently of clocks", async () => {
  const call = await running.caller();
  await running.sessions.create(call(), create(CreateSessionRequestSchema, { timeoutSeconds: 120 }));
  expect(launch?.lifetimeMs).toBeGreaterThan(110_000);
  expect(launch?.lifetimeMs).toBeLessThanOrEqual(120_000);
});

test("ends a session that its worker does not end in time", async () => {
  const call = await running.caller();
  const { id } = await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const { db } = running.app;
  const expire = (seconds: number) => {
    const over = { expires_at: sql<Date>`now() - ${seconds} * interval '1 s'` };
    return db.sql.updateTable("sessions").set(over).where("id", "=", id).execute();
  };
  await expire(8);
  const keeper = createSessionKeeper({ ...running.app, sessionMetrics: createSessionMetrics(createMetrics()) });
  expect(await db.transaction((tx) => keeper.endOverdue(tx))).toBe(0);
  await expire(11);
  const row = db.sql.selectFrom("sessions").select(["status", "ended_reason"]).where("id", "=", id);
  await expect
    .poll(() => row.executeTakeFirst(), { timeout: 10_000 })
    .toEqual({ status: "destroyed", ended_reason: "expired" });
  await expect.poll(() => worker.held.has(id), { timeout: 10_000 }).toBe(false);
});

test("limits the time of a launch attempt as a whole", async () => {
  const call = await running.caller();
  const profiles = createProfileService(running.app);
  const profile = await profiles.create(call(), create(CreateProfileRequestSchema, { name: "Shop" }));
  const begin = () => running.sessions.create(call(), create(CreateSessionRequestSchema, { profileId: profile.id }));
  const { id } = await begin();
  await running.sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
  const isSaved = async () =>
    (await profiles.get(call(), create(GetProfileRequestSchema, { id: profile.id }))).savedAt !== undefined;
  await expect.poll(isSaved, { timeout: 10_000 }).toBe(true);

  const now = performance.now.bind(performance);
  let elapsed = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now() + elapsed);
  whileRestoring = () => {
    elapsed = 25_000;
  };
  await begin();
  // Two attempts must take less than the 90 s that a row may stay provisioning.
  expect(25_000 + (launch?.context?.timeoutMs ?? 0)).toBeLessThan(45_000);
});

test("follows the events of a session's browser while the session runs", async () => {
  const call = await running.caller();
  const { id } = await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const timers = vi.spyOn(globalThis, "setTimeout");
  const leaving = new AbortController();
  const events = running.sessions.watch(call({ signal: leaving.signal }), create(WatchSessionRequestSchema, { id }));
  const iterator = events[Symbol.asyncIterator]();
  /** Reads events up to one of a type. Leaving a `for await` loop would end the stream. */
  const next = async (type: string) => {
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) throw new Error(`the stream ended before ${type}`);
      if (value.type === type) return;
    }
  };
  await next("session.console");
  // Simulates the passage of ten minutes.
  for (const [fire, milliseconds = 0] of timers.mock.calls) if (milliseconds >= 600_000) fire();
  goOn.resolve();
  await next("session.page_opened");
  expect(watches).toBe(1);
  leaving.abort();
  await iterator.return?.();
});

test("accepts a DevTools address for an hour", async () => {
  const call = await running.caller();
  const { id } = await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const { expiresAt } = await running.sessions.createCdpUrl(call(), create(CreateCdpUrlRequestSchema, { id }));
  const left = (expiresAt ? timestampMs(expiresAt) : 0) - Date.now();
  expect(Math.ceil(left / 60_000)).toBe(60);
});

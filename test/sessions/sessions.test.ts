import { PassThrough } from "node:stream";
import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { converse } from "../../gateway/policies/conversation.ts";
import type { Event } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  CaptureRequestSchema,
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  type DriveRequest,
  DriveRequestSchema,
  type DriveResponse,
  GetSessionRequestSchema,
  GetSessionStateRequestSchema,
  ListSessionsRequestSchema,
  NavigateRequestSchema,
  NavigateResponseSchema,
  SessionEndedReason,
  SessionService,
  SessionStatus,
  WatchSessionRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { makeAttempt } from "../../src/jobs/idempotency/request-attempt.ts";
import type { Call } from "../../src/kernel/call.ts";
import { serve } from "../../src/kernel/registry.ts";
import { fail } from "../../src/platform/errors.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { validate } from "../../src/platform/validation.ts";
import { requestOf } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const blank = create(CreateSessionRequestSchema, {});
const navigateTo = (id: string) => create(NavigateRequestSchema, { id, url: "https://example.com/" });

const botCheck = "https://example.com/bot-check";
const challengeSeen = ({ sessionId, placementEpoch }: { sessionId: string; placementEpoch: bigint }) =>
  ({
    sessionId,
    placementEpoch,
    sequence: 1n,
    event: { case: "challengeSeen", value: { challenge: "generic", url: botCheck, paused: true } },
  }) as const;

/** Waits for a condition within the test's own time limit. */
const eventually = (check: () => unknown) => expect.poll(check, { timeout: 15_000, interval: 50 });

describe("with a worker", () => {
  let running: SessionsApp;
  beforeAll(async () => {
    running = await startSessionsApp();
    const worker = await running.worker({
      slots: 100,
      handlers: {
        async navigate(_call, command) {
          const { context } = command;
          const { url } = requestOf(fleetCommands.navigate, command);
          const isCheck = url === botCheck;
          // Reports arrive after the response, within the second for which they are awaited.
          if (isCheck && context) setTimeout(() => worker.report(challengeSeen(context)), 20);
          const status = isCheck ? SessionStatus.PAUSED : SessionStatus.LIVE;
          return create(NavigateResponseSchema, { url, httpStatus: 200, status });
        },
      },
    });
  });
  afterAll(() => running[Symbol.asyncDispose]());

  test("creates, drives, captures from and destroys a session", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const session = await sessions.create(call(), create(CreateSessionRequestSchema, { labels: { a: "b" } }));
    expect(session).toMatchObject({ status: SessionStatus.LIVE, archetype: "desktop-chrome", labels: { a: "b" } });
    expect(session.id).toMatch(/^ses_[0-9a-z]{26}$/);
    const { id } = session;
    expect(await sessions.navigate(call(), navigateTo(id))).toMatchObject({ httpStatus: 200 });
    const capture = await sessions.capture(call(), create(CaptureRequestSchema, { id }));
    expect(Buffer.from(capture.data).toString()).toBe("abcdef");
    await sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));

    const gone = {
      slug: "session-destroyed",
      extensions: { ended_reason: "destroyed", duration_ms: expect.any(Number) },
    };
    const get = create(GetSessionRequestSchema, { id });
    await expect(sessions.get(call(), get)).rejects.toMatchObject(gone);
    const ended = { id, status: SessionStatus.DESTROYED, endedReason: SessionEndedReason.DESTROYED };
    const withEnded = { ...get, includeEnded: true };
    expect(await sessions.get(call(), withEnded)).toMatchObject(ended);
    const stranger = await running.caller();
    await expect(sessions.get(stranger(), withEnded)).rejects.toMatchObject({ slug: "not-found" });
    await expect(sessions.navigate(call(), navigateTo(id))).rejects.toMatchObject(gone);
    await expect(sessions.destroy(call(), create(DestroySessionRequestSchema, { id }))).rejects.toMatchObject(gone);
    const list = await sessions.list(call(), create(ListSessionsRequestSchema, { status: SessionStatus.DESTROYED }));
    expect(list.data).toMatchObject([{ id, endedReason: SessionEndedReason.DESTROYED }]);
  });

  test("shows a session to its own account only", async () => {
    const { sessions } = running;
    const owner = await running.caller();
    const stranger = await running.caller();
    const { id } = await sessions.create(owner(), blank);
    for (const wrong of [id, "ses_00000000000000000000000000", "ses_x", ""]) {
      await expect(sessions.get(stranger(), create(GetSessionRequestSchema, { id: wrong }))).rejects.toMatchObject({
        slug: "not-found",
      });
      await expect(sessions.navigate(stranger(), navigateTo(wrong))).rejects.toMatchObject({ slug: "not-found" });
    }
  });

  test("pages through sessions, newest first", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) ids.unshift((await sessions.create(call(), blank)).id);
    const first = await sessions.list(call(), create(ListSessionsRequestSchema, { limit: 3 }));
    expect(first.hasMore).toBe(true);
    const cursor = first.nextCursor ?? "";
    const second = await sessions.list(call(), create(ListSessionsRequestSchema, { limit: 3, cursor }));
    expect(second).toMatchObject({ hasMore: false });
    expect(second.nextCursor).toBeUndefined();
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids);
    await expect(
      sessions.list(call(), create(ListSessionsRequestSchema, { cursor: "nonsense" })),
    ).rejects.toMatchObject({ slug: "validation-failed", errors: [{ field: "cursor" }] });
  });

  test("lists the sessions that have all requested labels", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const make = (labels: Record<string, string>) =>
      sessions.create(call(), create(CreateSessionRequestSchema, { labels }));
    const both = await make({ env: "prod", url: "a:b" });
    const one = await make({ env: "prod" });
    await make({ env: "production" });
    const ids = async (...label: string[]) => {
      const { data } = await sessions.list(call(), create(ListSessionsRequestSchema, { label }));
      return data.map(({ id }) => id);
    };
    expect(await ids("env:prod")).toEqual([one.id, both.id]);
    expect(await ids("env:prod", "url:a:b")).toEqual([both.id]);
    expect(await ids("env:")).toEqual([]);
  });

  test("launches, drives, follows and ends a session for a feature without a request", async () => {
    const { app } = running;
    const { principal } = (await running.caller())();
    const made = makeAttempt(app.db, { ids: app.ids, resumes: false });
    const context = { requestId: "", traceparent: "", deadline: Number.POSITIVE_INFINITY };
    const feature = { principal, ...context, ...made, signal: new AbortController().signal };
    const { id } = await app.sessions.launch(feature, blank);
    const followed = collect(app.sessions.follow({ caller: feature, id, signal: feature.signal }));
    await followed.begun;
    expect(await app.sessions.navigate(feature, navigateTo(id))).toMatchObject({ httpStatus: 200 });
    await app.sessions.end(feature, id, { reason: "quota" });
    expect((await followed.all).at(-1)?.data).toMatchObject({ session_id: id, ended_reason: "quota" });
    const gone = { slug: "session-destroyed", extensions: { ended_reason: "quota" } };
    await expect(app.sessions.find(feature, id)).rejects.toMatchObject(gone);
  });

  test("shows a session as paused as soon as a navigation has reported it", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const { id } = await sessions.create(call(), blank);
    const navigated = await sessions.navigate(call(), create(NavigateRequestSchema, { id, url: botCheck }));
    expect(navigated.status).toBe(SessionStatus.PAUSED);
    const shown = await sessions.get(call(), create(GetSessionRequestSchema, { id }));
    expect(shown).toMatchObject({ status: SessionStatus.PAUSED, pauseReason: "generic" });
  });

  test("refuses to follow a session from an event that it does not have", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const { id } = await sessions.create(call(), blank);
    for (const afterEventId of ["", "evt_bad"]) {
      const watched = collect(sessions.watch(call(), create(WatchSessionRequestSchema, { id, afterEventId })));
      await expect(watched.all).rejects.toMatchObject({ slug: "not-found" });
    }
  });

  test("ends an event stream whose client disconnected before it began", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const { id } = await sessions.create(call(), blank);
    const gone = call({ signal: AbortSignal.abort() });
    expect(await collect(sessions.watch(gone, create(WatchSessionRequestSchema, { id }))).all).toEqual([]);
  });

  test("delivers events to a Drive stream although they could not be read when it began", async () => {
    const { app, sessions } = running;
    const call = await running.caller();
    const { id: sessionId } = await sessions.create(call(), blank);
    const commands = new PassThrough({ objectMode: true });
    commands.write(create(DriveRequestSchema, { sessionId, id: "1", state: {} }));
    const watch = vi.spyOn(app.events, "watch").mockRejectedValueOnce(fail("internal"));
    const driven = collect(drive(sessions, call(), commands));
    await expect.poll(() => watch.mock.calls.length, { timeout: 10_000 }).toBe(2);
    await watch.mock.results[1]?.value;
    await sessions.destroy(call(), create(DestroySessionRequestSchema, { id: sessionId }));
    await eventually(() => driven.seen.some(({ event }) => event?.type === "session.completed")).toBe(true);
    commands.end();
    await driven.all;
  });

  test("never exceeds the tier's concurrent sessions", async () => {
    const { sessions } = running;
    const call = await running.caller("personal");
    const attempts = await Promise.allSettled(Array.from({ length: 12 }, () => sessions.create(call(), blank)));
    const refused = attempts.filter((attempt) => attempt.status === "rejected");
    expect(refused).toHaveLength(9);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ slug: "concurrency-limit", extensions: { current_sessions: 3, limit: 3 } });
    }
  });

  test("counts concurrent sessions by the account's current tier", async () => {
    const { app, sessions } = running;
    const call = await running.caller("free");
    await sessions.create(call(), blank);
    await expect(sessions.create(call(), blank)).rejects.toMatchObject({ extensions: { limit: 1 } });
    const { accountId } = call().principal;
    await app.db.sql.updateTable("accounts").set({ tier: "personal" }).where("id", "=", accountId).execute();
    expect(call().principal.tier).toBe("free");
    expect((await sessions.create(call(), blank)).status).toBe(SessionStatus.LIVE);
  });

  test("follows a session from its live state to its terminal event", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const { id } = await sessions.create(call(), blank);
    const watched = collect(sessions.watch(call(), create(WatchSessionRequestSchema, { id })));
    await watched.begun;
    await sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
    const events = await watched.all;
    expect(events.at(-1)).toMatchObject({
      type: "session.completed",
      data: { session_id: id, ended_reason: "destroyed", duration_ms: expect.any(Number) },
    });

    const [created] = await running.app.db.sql
      .selectFrom("events")
      .select(["id", "type"])
      .where("subject", "=", id)
      .orderBy("position")
      .execute();
    const resumed = create(WatchSessionRequestSchema, { id, afterEventId: created?.id ?? "" });
    const types = (await collect(sessions.watch(call(), resumed)).all).map(({ type }) => type);
    expect(types).toEqual(["session.live", "session.completed"]);
    const again = create(WatchSessionRequestSchema, { id, afterEventId: events.at(-1)?.id ?? "" });
    await expect(collect(sessions.watch(call(), again)).all).rejects.toMatchObject({ slug: "session-destroyed" });
  });

  test("answers the commands of a Drive stream in order, and continues after an error", async () => {
    const { sessions } = running;
    const call = await running.caller();
    const { id: sessionId } = await sessions.create(call(), blank);
    const inits: MessageInitShape<typeof DriveRequestSchema>[] = [
      { sessionId, id: "1", navigate: { url: "https://example.com/" } },
      { id: "2", navigate: { url: "ftp://example.com/" } },
      { id: "3", capture: {} },
      { id: "4", capture: { kind: 1 } },
      { id: "5", state: {} },
    ];
    const commands = inits.map((init) => create(DriveRequestSchema, init));
    const answers = await collect(drive(sessions, call(), from(commands))).all;
    const seen = answers.filter(({ event }) => !event).map((answer) => `${answer.id} ${kindOf(answer)}`);
    expect(seen).toEqual([
      "1 navigate",
      "2 error bad-request",
      "3 error validation-failed",
      "4 capture",
      "4 chunk",
      "4 chunk",
      "5 state",
    ]);
  });

  test("ends running commands when the session is destroyed", async () => {
    const { sessions } = running;
    const hanging = await running.worker({
      slots: 1_000,
      handlers: { navigate: () => new Promise(() => undefined) },
    });
    const call = await running.caller();
    let id = "";
    await eventually(async () => {
      ({ id } = await sessions.create(call(), blank));
      return hanging.held.has(id);
    }).toBe(true);
    const navigation = sessions.navigate(call(), navigateTo(id));
    const ended = expect(navigation).rejects.toMatchObject({ slug: "session-destroyed" });
    await sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
    await ended;
    hanging.die();
  });
});

test("never exceeds a worker's slots, and hands a freed slot to a waiting create", async () => {
  // Longer than a busy machine takes to release a slot. Creates that must not wait so long are aborted.
  await using running = await startSessionsApp({ QUEUE_MS: "60000" });
  const { sessions } = running;
  const worker = await running.worker({ slots: 3 });
  // Separate accounts, because creates of one account run one after the other.
  const callers = await Promise.all(Array.from({ length: 8 }, () => running.caller()));
  const leaving = new AbortController();
  const creating = callers.map((call) => sessions.create(call({ signal: leaving.signal }), blank));
  const settling = Promise.allSettled(creating);
  await eventually(() => worker.held.size).toBe(3);
  leaving.abort();
  const attempts = await settling;
  const created = attempts.filter((attempt) => attempt.status === "fulfilled").map(({ value }) => value.id);
  expect(created).toHaveLength(3);
  expect(worker.held.size).toBe(3);
  for (const attempt of attempts) {
    if (attempt.status === "rejected")
      expect(attempt.reason).toMatchObject({ slug: "capacity-unavailable", retryAfter: 2 });
  }
  const [call] = callers.filter((_caller, index) => attempts[index]?.status === "fulfilled");
  if (!call) throw new Error("no session was created");
  const waiting = sessions.create(call(), blank);
  await sessions.destroy(call(), create(DestroySessionRequestSchema, { id: created[0] ?? "" }));
  await worker.heartbeat();
  expect((await waiting).status).toBe(SessionStatus.LIVE);
});

/** Expires the leases of all workers, as after 8 s without a heartbeat. The first sweep after a start renews them. */
async function lapseLeases({ app, pass }: SessionsApp): Promise<void> {
  await app.db.sql
    .updateTable("worker_leases")
    .set({ lease_until: new Date(0) })
    .execute();
  pass(1_000);
}

test("ends the sessions of a silent worker after its lease, with one terminal event each", async () => {
  await using running = await startSessionsApp();
  const { sessions, app } = running;
  const worker = await running.worker();
  const call = await running.caller();
  const { id } = await sessions.create(call(), blank);
  worker.fallSilent();
  const get = () => sessions.get(call(), create(GetSessionRequestSchema, { id })).catch((error) => error.extensions);
  expect(await get()).toMatchObject({ status: SessionStatus.LIVE });
  await eventually(async () => {
    await lapseLeases(running);
    return await get();
  }).toMatchObject({ ended_reason: "worker_lost" });
  const types = await app.db.sql
    .selectFrom("events")
    .select("type")
    .where("subject", "=", id)
    .orderBy("position")
    .execute();
  expect(types.map(({ type }) => type)).toEqual(["session.created", "session.live", "session.failed"]);
  await worker.heartbeat();
  expect(worker.held.size).toBe(0);
});

test("answers a command whose worker was killed", async () => {
  await using running = await startSessionsApp();
  const { sessions } = running;
  const worker = await running.worker({ handlers: { navigate: () => new Promise(() => undefined) } });
  const call = await running.caller();
  const { id } = await sessions.create(call(), blank);
  const began = performance.now();
  const navigation = sessions.navigate(call(), navigateTo(id));
  const verdict = navigation.catch((error: { slug: string; extensions: object }) => error);
  await eventually(() => sessions.getState(call(), create(GetSessionStateRequestSchema, { id }))).toBeDefined();
  worker.die();
  await eventually(async () => {
    await lapseLeases(running);
    return await Promise.race([verdict, undefined]);
  }).toBeDefined();
  const error = await verdict;
  expect(performance.now() - began).toBeLessThan(15_000);
  expect([{ slug: "session-destroyed" }, { slug: "driver-error", extensions: { worker_lost: true } }]).toContainEqual(
    expect.objectContaining({ slug: (error as { slug: string }).slug }),
  );
});

test("applies a worker's event once, and ignores those of other placements", async () => {
  await using running = await startSessionsApp();
  const { sessions, app } = running;
  const worker = await running.worker();
  const call = await running.caller();
  const { id: sessionId } = await sessions.create(call(), blank);
  const seen = {
    sessionId,
    placementEpoch: 1n,
    sequence: 1n,
    event: { case: "challengeSeen", value: { challenge: "turnstile", url: "https://example.com/", paused: true } },
  } as const;
  const state = () =>
    app.db.sql.selectFrom("sessions").select(["status", "pause_reason"]).where("id", "=", sessionId).executeTakeFirst();
  await worker.report({ ...seen, placementEpoch: 7n });
  expect(await state()).toEqual({ status: "live", pause_reason: null });
  await worker.report(seen);
  expect(await state()).toEqual({ status: "paused", pause_reason: "turnstile" });
  await worker.report(seen, { ...seen, sequence: 2n, event: { case: "challengeGone", value: {} } });
  await worker.report(seen);
  expect(await state()).toEqual({ status: "live", pause_reason: null });
  const ended = { reason: SessionEndedReason.IDLE, detail: "" };
  const end = { sessionId, placementEpoch: 1n, sequence: 3n, event: { case: "ended", value: ended } } as const;
  await worker.report(end, end);
  await worker.report(end);
  const types = await app.db.sql
    .selectFrom("events")
    .select("type")
    .where("subject", "=", sessionId)
    .orderBy("position")
    .execute();
  expect(types.map(({ type }) => type)).toEqual([
    "session.created",
    "session.live",
    "session.challenge_detected",
    "session.challenge_resolved",
    "session.completed",
  ]);
  await expect(sessions.get(call(), create(GetSessionRequestSchema, { id: sessionId }))).rejects.toMatchObject({
    extensions: { ended_reason: "idle" },
  });
});

test("treats the sessions of a restarted worker as lost immediately", async () => {
  await using running = await startSessionsApp();
  const { sessions } = running;
  const worker = await running.worker();
  const call = await running.caller();
  const { id } = await sessions.create(call(), blank);
  await worker.register();
  expect(worker.incarnation).toBe(1n);
  expect((await sessions.get(call(), create(GetSessionRequestSchema, { id }))).status).toBe(SessionStatus.LIVE);
  await worker.register({ bootId: "another start" });
  expect(worker.incarnation).toBe(2n);
  await expect(sessions.get(call(), create(GetSessionRequestSchema, { id }))).rejects.toMatchObject({
    extensions: { ended_reason: "worker_lost" },
  });
});

test("retries a create elsewhere when its worker is lost, and ends one that cannot be launched", async () => {
  await using running = await startSessionsApp();
  const { sessions, app } = running;
  const call = await running.caller();
  const dying = await running.worker({
    handlers: {
      create: async () => {
        dying.die();
        return new Promise(() => undefined);
      },
    },
  });
  const helper = await running.worker({ slots: 1 });
  // Placement prefers the least loaded worker, so a session on the second sends the next create to the first.
  const attempts = await Promise.allSettled([sessions.create(call(), blank), sessions.create(call(), blank)]);
  const live = attempts.filter(({ status }) => status === "fulfilled");
  expect(live).toHaveLength(1);
  expect(helper.held.size).toBe(1);
  expect(attempts.find(({ status }) => status === "rejected")).toMatchObject({
    reason: { slug: "internal", detail: expect.stringMatching(/could not be reached, or was lost/), retryAfter: 2 },
  });

  const refusing = await running.worker({
    slots: 50,
    handlers: {
      create: () =>
        Promise.reject(fail("driver-error", { launch_failed: true }, { detail: "the browser did not start" })),
    },
  });
  await expect(sessions.create(call(), blank)).rejects.toMatchObject({
    slug: "driver-error",
    extensions: { launch_failed: true },
  });
  refusing.die();
  const failed = await app.db.sql.selectFrom("events").select("data").where("type", "=", "session.failed").execute();
  expect(failed.map(({ data }) => data)).toContainEqual(
    expect.objectContaining({ ended_reason: "failed_to_start", detail: "the browser did not start", duration_ms: 0 }),
  );
});

test("finds each session of a lost worker a slot, although all try the same one first", async () => {
  await using running = await startSessionsApp();
  const { sessions } = running;
  const call = await running.caller();
  let arrived = 0;
  const dying = await running.worker({
    handlers: {
      create: async () => {
        arrived += 1;
        if (arrived === 3) {
          await Promise.all([1, 2, 3].map(() => running.worker({ slots: 1 })));
          dying.die();
        }
        return new Promise(() => undefined);
      },
    },
  });
  const made = await Promise.allSettled([1, 2, 3].map(() => sessions.create(call(), blank)));
  expect(made.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
});

function kindOf(answer: DriveResponse): string {
  if (answer.error) return `error ${answer.error.type.split("/").at(-1)}`;
  const kinds = ["navigate", "interact", "wait", "capture", "chunk", "state"] as const;
  return kinds.find((kind) => answer[kind] !== undefined) ?? "nothing";
}

async function* from(requests: DriveRequest[]): AsyncGenerator<DriveRequest> {
  yield* requests;
}

/** Opens a Drive stream as a gateway does, with a rate-limit token for each message. */
function drive(
  sessions: SessionsApp["sessions"],
  call: Call,
  requests: AsyncIterable<DriveRequest>,
): AsyncIterable<DriveResponse> {
  const served = serve(SessionService, sessions).methods.find(({ kind }) => kind === "bidi_streaming");
  if (served?.kind !== "bidi_streaming") throw new Error("there is no Drive");
  const draw = async (): Promise<void> => undefined;
  const check = (message: Message): void => validate(DriveRequestSchema, message);
  // Restores the types of a served method's messages.
  return converse({
    call,
    served,
    requests,
    awaitAllowance: () => undefined,
    draw,
    check,
    errorsBase: "",
  }) as AsyncIterable<DriveResponse>;
}

/** Reads a stream to its end; `begun` resolves with its first item. */
function collect<T extends Event | DriveResponse>(
  stream: AsyncIterable<T>,
): { all: Promise<T[]>; begun: Promise<unknown>; seen: readonly T[] } {
  const iterator = stream[Symbol.asyncIterator]();
  const items: T[] = [];
  const first = iterator.next();
  async function read(): Promise<T[]> {
    for (let result = await first; !result.done; result = await iterator.next()) items.push(result.value);
    return items;
  }
  return { all: read(), begun: first, seen: items };
}

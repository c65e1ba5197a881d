import { create, type Message } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { insertAccount } from "../../../src/accounts/store.ts";
import { type Profile, ProfileSchema } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { createIdempotency, type Idempotency } from "../../../src/jobs/idempotency/idempotency.ts";
import type { MethodAttempt } from "../../../src/kernel/call.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { type Failure, fail } from "../../../src/platform/errors.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { createSealer } from "../../../src/platform/secrets/secrets-sealer.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../../support/database.ts";
import { createTestClock } from "../../support/test-clock.ts";

const clock = createTestClock();
const ids = createIds(clock);
const accountId = ids.next("acc");
const sealer = createSealer({ keys: [{ id: "test", secret: Buffer.alloc(32, 1) }], file: undefined });

let database: TestDatabase;
/** Gateways that send no heartbeats. */
let one: Idempotency;
let other: Idempotency;
/** Gateway that does not wait for earlier attempts. */
let hasty: Idempotency;

beforeAll(async () => {
  database = await startTestDatabase();
  const { db } = database;
  await db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  one = createIdempotency({ db, ids, sealer, clock, log: silentLog });
  other = createIdempotency({ db, ids, sealer, clock, log: silentLog });
  hasty = createIdempotency({ db, ids, sealer, clock, log: silentLog, wait: 0 });
});
afterAll(() => database[Symbol.asyncDispose]());

let keys = 0;

function freshRequest() {
  keys += 1;
  let replays = 0;
  const request = { accountId, caller: "key_1", key: `key ${keys}`, hash: Buffer.alloc(32), output: ProfileSchema };
  return {
    request: {
      ...request,
      onReplay: () => {
        replays += 1;
      },
    },
    replays: () => replays,
  };
}

/** Commits an account as the change of an attempt and returns its name. */
function making(name: string, at: MethodAttempt): Promise<Message> {
  const id = at.ids.next("acc");
  return at.commit<Profile>(async (tx) => {
    await insertAccount(tx, { id, name, tier: "free" });
    return create(ProfileSchema, { id, name });
  });
}

async function made(name: string): Promise<string[]> {
  const rows = await database.db.sql.selectFrom("accounts").select("id").where("name", "=", name).execute();
  return rows.map(({ id }) => id);
}

const secondsAgo = (seconds: number) => sql<Date>`clock_timestamp() - ${seconds} * interval '1 second'`;

function grow(key: string, seconds: number) {
  const old = { beat_at: secondsAgo(seconds) };
  return database.db.sql.updateTable("idempotency_keys").set(old).where("key", "=", key).execute();
}

/** Runs a request until its commit. `goOn` commits the change or a failure, and `giveUp` throws. */
async function stall(request: Parameters<Idempotency["repeatable"]>[0], gateway = one) {
  const { promise: mayGoOn, resolve: goOn, reject: giveUp } = Promise.withResolvers<Failure | undefined>();
  const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
  const stalled = gateway.repeatable(request, async (attempt) => {
    // All attempts have the same first identifier. A resumed attempt uses the second one for its own change.
    if (attempt.resumes) attempt.ids.next("ses");
    begun();
    const failure = await mayGoOn;
    return failure ? attempt.commit(async () => failure) : making("stalled", attempt);
  });
  await hasBegun;
  return { stalled, goOn: () => goOn(undefined), commit: goOn, giveUp };
}

const ranTwice = () => Promise.reject(new Error("it ran twice"));

async function isSilent(key: string): Promise<boolean> {
  const silent = sql<boolean>`beat_at < clock_timestamp() - interval '10 seconds'`.as("silent");
  const row = database.db.sql.selectFrom("idempotency_keys").select(silent).where("key", "=", key);
  return (await row.executeTakeFirstOrThrow()).silent;
}

test("only the last attempt commits, and earlier attempts return its response", async () => {
  const { request, replays } = freshRequest();
  const { stalled, goOn } = await stall(request);
  await grow(request.key, 11);
  const attempts: [boolean, string][] = [];
  const answer = await other.repeatable(request, async (attempt) => {
    attempts.push([attempt.resumes, attempt.ids.next("ses")]);
    return making("taken over", attempt);
  });
  goOn();
  expect(await stalled).toEqual(answer);
  expect(replays()).toBe(1);
  expect([await made("stalled"), (await made("taken over")).length]).toEqual([[], 1]);
  expect(attempts).toEqual([[true, expect.stringMatching(/^ses_/)]]);
});

test("an attempt with heartbeats is not taken over, and the same request waits for it for a limited time", async () => {
  const { request, replays } = freshRequest();
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
  const slow = one.repeatable(request, async (attempt) => {
    begun();
    await mayGoOn;
    return making("slow", attempt);
  });
  await hasBegun;
  await grow(request.key, 11);
  one.start();
  clock.advance(1_000);
  await expect.poll(() => isSilent(request.key), { timeout: 10_000, interval: 20 }).toBe(false);
  const again = (to: Idempotency) => to.repeatable(request, ranTwice);
  const stillRuns = { slug: "conflict", detail: expect.stringMatching(/ is still running: repeat the request later$/) };
  await expect(again(hasty)).rejects.toMatchObject(stillRuns);
  const now = performance.now.bind(performance);
  let elapsed = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now() + elapsed);
  onTestFinished(() => void vi.restoreAllMocks());
  const given = again(other);
  elapsed = 60_000;
  await expect(given).rejects.toMatchObject(stillRuns);
  const longWait = again(other);
  const shortWait = again(
    createIdempotency({ db: database.db, ids, sealer, clock: systemClock, log: silentLog, wait: 10_000 }),
  );
  elapsed += 15_000;
  await expect(shortWait).rejects.toMatchObject(stillRuns);
  goOn();
  expect(await longWait).toEqual(await slow);
  await one.stop();
  expect([replays(), (await made("slow")).length]).toEqual([1, 1]);
});

test("a later attempt reuses the identifiers of a failed one, unless its failure changed data", async () => {
  const { request } = freshRequest();
  const seen: [boolean, string, string][] = [];
  const attemptIt = (end: (attempt: MethodAttempt) => Promise<Message>) =>
    hasty.repeatable(request, (attempt) => {
      seen.push([attempt.resumes, attempt.ids.next("ses"), attempt.ids.next("ses")]);
      return end(attempt);
    });
  const away = fail("internal");
  await expect(attemptIt(() => Promise.reject(away))).rejects.toBe(away);
  const full = fail("capacity-unavailable", {}, { detail: "full" });
  await expect(attemptIt((attempt) => attempt.commit(async () => full))).rejects.toBe(full);
  await attemptIt((attempt) => making("third", attempt));
  const [first, second, third] = seen;
  expect(seen.map(([resumes]) => resumes)).toEqual([false, true, false]);
  expect(second?.slice(1)).toEqual(first?.slice(1));
  expect(new Set(seen.flatMap(([, ...made]) => made)).size).toBe(4);
  expect(third?.[1]).not.toBe(first?.[1]);
});

test("a failure that changed data is stored, and uncommitted results are never returned", async () => {
  const { request, replays } = freshRequest();
  const gone = fail("session-destroyed", {}, { detail: "gone" });
  const failing = () => one.repeatable(request, (attempt) => attempt.commit(async () => gone));
  await expect(failing()).rejects.toBe(gone);
  await expect(failing()).rejects.toMatchObject({ slug: "session-destroyed" });
  expect(replays()).toBe(1);
  const loose = one.once(async () => create(ProfileSchema, { id: "prf_1" }));
  await expect(loose).rejects.toThrow("expected call.commit before a POST returns pilothouse.v1.Profile");
});

test("responses are stored sealed", async () => {
  const { request, replays } = freshRequest();
  const first = await one.repeatable(request, (attempt) => making("a secret", attempt));
  const row = await database.db.sql
    .selectFrom("idempotency_keys")
    .select("answer")
    .where("key", "=", request.key)
    .executeTakeFirstOrThrow();
  expect(row.answer?.includes("a secret")).toBe(false);
  expect(await other.repeatable(request, ranTwice)).toEqual(first);
  expect(replays()).toBe(1);
});

test.each([
  ["with another body", { hash: Buffer.alloc(32, 1) }, /had a different method, path or body: use a new key$/],
  ["of another caller", { caller: "key_2" }, /was sent by another caller: use a new key$/],
])("a request %s does not take over the attempt of a silent gateway", async (_, changes, detail) => {
  const { request } = freshRequest();
  const { stalled, goOn } = await stall(request);
  await grow(request.key, 3_600);
  const later = other.repeatable({ ...request, ...changes }, ranTwice);
  await expect(later).rejects.toMatchObject({ slug: "conflict", detail: expect.stringMatching(detail) });
  goOn();
  const { id } = (await stalled) as Profile;
  expect(await made("stalled")).toContain(id);
});

test("a gateway counts as alive 9 s after its last heartbeat and as silent after 11 s", async () => {
  const { request } = freshRequest();
  const { stalled, goOn } = await stall(request);
  await grow(request.key, 9);
  await expect(hasty.repeatable(request, ranTwice)).rejects.toMatchObject({ slug: "conflict" });
  await grow(request.key, 11);
  const answer = await hasty.repeatable(request, async (attempt) => {
    // Both attempts have the same first identifier, which no other change uses.
    attempt.ids.next("ses");
    return making("after the silence", attempt);
  });
  goOn();
  expect(await stalled).toEqual(answer);
});

const away = fail("internal");
const full = fail("capacity-unavailable", {}, { detail: "full" });

test.each<[string, (zombie: Awaited<ReturnType<typeof stall>>) => void]>([
  ["commits its change", ({ goOn }) => goOn()],
  ["releases its key", ({ commit }) => commit(full)],
])("the outcome of an attempt that %s after it was taken over is rejected", async (_, end) => {
  const { request } = freshRequest();
  const zombie = await stall(request, hasty);
  await grow(request.key, 11);
  const successor = await stall(request, other);
  end(zombie);
  const running = { slug: "conflict", detail: expect.stringMatching(/ is still running: repeat the request later$/) };
  await expect(zombie.stalled).rejects.toMatchObject(running);
  successor.goOn();
  const answer = await successor.stalled;
  expect(await one.repeatable(request, ranTwice)).toEqual(answer);
});

test("a failed attempt does not make another attempt count as silent", async () => {
  const [{ request }, { request: otherKey }, { request: failing }] = [freshRequest(), freshRequest(), freshRequest()];
  const otherAccount = { ...failing, accountId: ids.next("acc") };
  await database.db.transaction((tx) => insertAccount(tx, { id: otherAccount.accountId, name: "Test", tier: "free" }));
  const zombie = await stall(request);
  await grow(request.key, 11);
  const running = [await stall(request, other), await stall(otherKey), await stall(otherAccount)];
  // After a retryable failure the next attempt starts at once.
  zombie.giveUp(away);
  await expect(zombie.stalled).rejects.toBe(away);
  await expect(one.repeatable(failing, () => Promise.reject(away))).rejects.toBe(away);
  for (const each of [request, otherKey, otherAccount])
    await expect(hasty.repeatable(each, ranTwice)).rejects.toMatchObject({ slug: "conflict" });
  for (const { stalled, goOn } of running) {
    goOn();
    expect(await stalled).toMatchObject({ name: "stalled" });
  }
});

test("heartbeats keep only the attempts of their own gateway alive", async () => {
  const [{ request: dead }, { request: alive }, { request: taken }] = [freshRequest(), freshRequest(), freshRequest()];
  const zombie = await stall(taken, other);
  await grow(taken.key, 11);
  const running = [await stall(taken), await stall(dead), await stall(alive, other)];
  for (const { key } of [dead, alive, taken]) await grow(key, 11);
  other.start();
  clock.advance(1_000);
  await expect.poll(() => isSilent(alive.key), { timeout: 10_000, interval: 20 }).toBe(false);
  await other.stop();
  expect([await isSilent(dead.key), await isSilent(taken.key)]).toEqual([true, true]);
  for (const { stalled, goOn } of running) {
    goOn();
    await stalled;
  }
  zombie.goOn();
  await zombie.stalled;
});

const hour = 3_600;

test("a response is stored for 24 hours, then deleted, and the request runs as a new one", async () => {
  const age = (key: string, seconds: number) => {
    const old = { created_at: secondsAgo(seconds) };
    return database.db.sql.updateTable("idempotency_keys").set(old).where("key", "=", key).execute();
  };
  const rowsOf = (key: string) =>
    database.db.sql.selectFrom("idempotency_keys").select("key").where("key", "=", key).execute();
  const [{ request, replays }, { request: unasked }] = [freshRequest(), freshRequest()];
  const run = () => one.repeatable(request, (attempt) => making("kept", attempt));
  const [first] = [await run(), await one.repeatable(unasked, (attempt) => making("unasked", attempt))];
  for (const { key } of [request, unasked]) await age(key, 24 * hour - 60);
  await one.sweep();
  expect(await run()).toEqual(first);
  for (const { key } of [request, unasked]) await age(key, 24 * hour + 60);
  expect(await run()).not.toEqual(first);
  expect(replays()).toBe(1);
  expect(await rowsOf(unasked.key)).toHaveLength(1);
  await one.sweep();
  expect([await rowsOf(unasked.key), await rowsOf(request.key)]).toEqual([[], [{ key: request.key }]]);
});

test("only the row of the same account and key is changed", async () => {
  const [{ request }, kept] = [freshRequest(), freshRequest()];
  const others = { ...request, accountId: ids.next("acc"), hash: Buffer.alloc(32, 2) };
  await database.db.transaction((tx) => insertAccount(tx, { id: others.accountId, name: "Test", tier: "free" }));
  const run = (of: typeof request, name: string) => one.repeatable(of, (attempt) => making(name, attempt));
  const answer = await run(kept.request, "kept");
  const { stalled, goOn } = await stall(others);
  // The first attempt releases its key. The second stores its response.
  await expect(one.repeatable(request, (attempt) => attempt.commit(async () => full))).rejects.toBe(full);
  const rows = database.db.sql.selectFrom("idempotency_keys").select("account_id").where("key", "=", request.key);
  expect(await rows.execute()).toEqual([{ account_id: others.accountId }]);
  const own = await run(request, "own");
  goOn();
  const foreign = await stalled;
  expect(foreign).toMatchObject({ name: "stalled" });
  expect([await run(request, "again"), await run(others, "again")]).toEqual([own, foreign]);
  expect([await run(kept.request, "again"), kept.replays()]).toEqual([answer, 1]);
});

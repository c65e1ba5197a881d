import { create } from "@bufbuild/protobuf";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  ConnectOptionsSchema,
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  FetchRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { readChange } from "../../src/kernel/account-change.ts";
import type { Call } from "../../src/kernel/call.ts";
import { validate } from "../../src/platform/validation.ts";
import { joinQueue } from "../../src/sessions/launch/slot-wait-store.ts";
import { moveTime } from "../support/move-time.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

let running: SessionsApp;
/** Calls of a new account of the tier `free`, which may run one session, for each test. */
let call: (changes?: Partial<Call>) => Call;
/** Places that were reported for the account, as `<session> <place>`. */
let places: string[];

beforeAll(async () => {
  running = await startSessionsApp();
  await running.worker({ slots: 100 });
  return () => running[Symbol.asyncDispose]();
});

beforeEach(async () => {
  call = await running.caller("free");
  const { accountId } = call().principal;
  places = [];
  const own = places;
  running.app.bus.subscribe("account-changed", (message) => {
    const { accountId: whose, change, id, place } = readChange(message);
    if (whose === accountId && change === "queued") own.push(`${id} ${place}`);
  });
});

afterEach(() => moveTime(running.app.db, 0));

const begin = (waitForSlotMs?: number, signal = new AbortController().signal) =>
  running.sessions.create(
    call({ signal }),
    create(CreateSessionRequestSchema, { ...(waitForSlotMs !== undefined && { waitForSlotMs }) }),
  );
const end = (id: string) => running.sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
const reported = (count: number) => expect.poll(() => places.length, { timeout: 15_000 }).toBe(count);
const refusal = { slug: "concurrency-limit", extensions: { limit: 1 } };

/** Adds a create of another gateway to the queue. */
const joinElsewhere = (id: string) =>
  running.app.db.transaction(async (tx) => joinQueue(tx, { accountId: call().principal.accountId, id }));

test("creates wait for a slot in order, and their places are reported", async () => {
  const { id } = await begin();
  const settled: string[] = [];
  const waiting = [];
  for (const name of ["first", "second", "third"]) {
    const note = async (created: ReturnType<typeof begin>) => {
      const session = await created;
      settled.push(name);
      return session;
    };
    waiting.push(note(begin(60_000)));
    await reported(waiting.length);
  }
  expect(places.map((each) => each.split(" ")[1])).toEqual(["1", "2", "3"]);
  let last = id;
  for (const created of waiting) {
    await end(last);
    last = (await created).id;
  }
  expect(settled).toEqual(["first", "second", "third"]);
  const third = places[2]?.split(" ")[0];
  expect(places.filter((each) => each.startsWith(`${third}`)).map((each) => each.split(" ")[1])).toEqual([
    "3",
    "2",
    "1",
  ]);
  expect(last).toBe(third);
});

test("a create whose client leaves frees its place", async () => {
  const { id } = await begin();
  const client = new AbortController();
  const left = begin(60_000, client.signal);
  const refused = expect(left).rejects.toMatchObject({ slug: "capacity-unavailable" });
  await reported(1);
  const next = begin(60_000);
  await reported(2);
  client.abort();
  await refused;
  await reported(3);
  expect(places[2]).toBe(`${places[1]?.split(" ")[0]} 1`);
  await end(id);
  expect((await next).id).toBe(places[2]?.split(" ")[0]);
});

test("a create that has waited long enough is refused", async () => {
  const { id } = await begin();
  const began = performance.now();
  await expect(begin(300)).rejects.toMatchObject(refusal);
  expect(performance.now() - began).toBeGreaterThan(290);
  await end(id);
  await begin();
});

test("a create that does not wait is refused while others wait, until 3 s after their gateway crashed", async () => {
  await joinElsewhere("ses_elsewhere");
  await expect(begin()).rejects.toMatchObject({ ...refusal, detail: expect.stringMatching(/set wait_for_slot_ms/) });
  await moveTime(running.app.db, 2_000);
  await expect(begin()).rejects.toMatchObject(refusal);
  await moveTime(running.app.db, 4_000);
  await begin();
});

test("waiting creates use the slots of a higher tier", async () => {
  await begin();
  const waiting = [begin(60_000), begin(60_000)];
  await reported(2);
  const { accountId } = call().principal;
  await running.app.db.sql.updateTable("accounts").set({ tier: "personal" }).where("id", "=", accountId).execute();
  expect(await Promise.all(waiting)).toHaveLength(2);
});

test("at most 100 creates of an account wait", async () => {
  await begin();
  for (let index = 0; index < 100; index += 1) await joinElsewhere(`ses_${call().principal.accountId}_${index}`);
  await expect(begin(60_000)).rejects.toMatchObject(refusal);
});

test("a fetch waits like a create", async () => {
  const { id } = await begin();
  const request = create(FetchRequestSchema, { url: "https://example.com/", waitForSlotMs: 60_000 });
  const fetched = running.sessions.fetch(call(), request);
  await reported(1);
  await end(id);
  expect(await fetched).toMatchObject({ title: "Example Domain" });
});

test.each([CreateSessionRequestSchema, FetchRequestSchema, ConnectOptionsSchema])(
  "%s accepts a wait of up to 60 s",
  (schema) => {
    const wait = (waitForSlotMs: number) =>
      validate(schema, create(schema, { url: "https://example.com/", waitForSlotMs } as object));
    wait(60_000);
    expect(() => wait(60_001)).toThrow(expect.objectContaining({ slug: "validation-failed" }));
  },
);

import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProfileChunkSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  CreateProfileRequestSchema,
  DeleteProfileRequestSchema,
  GetProfileRequestSchema,
  ListProfilesRequestSchema,
  UpdateProfileRequestSchema,
} from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { CreateSessionRequestSchema, DestroySessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { createProfileService } from "../../src/profiles/service.ts";
import { type FakeWorker, requestOf } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const mebibyte = 2 ** 20;

/** Size of the store that the fake worker returns. */
let storeSize = 1_000;
let running: SessionsApp;
let worker: FakeWorker;
let profiles: ReturnType<typeof createProfileService>;
/** Restored stores by session. */
const restored = new Map<string, Buffer>();
/** Delays the worker's save until it resolves. */
let packing: Promise<void> = Promise.resolve();

beforeAll(async () => {
  running = await startSessionsApp();
  profiles = createProfileService(running.app);
  worker = await running.worker({
    slots: 100,
    handlers: {
      async putProfile(_call, chunks) {
        const parts: Uint8Array[] = [];
        let id = "";
        for await (const { context, data } of chunks) {
          id ||= context?.sessionId ?? "";
          parts.push(data);
        }
        restored.set(id, Buffer.concat(parts));
        return { $typeName: "google.protobuf.Empty" };
      },
      async *takeProfile(_call, command) {
        const { context } = command;
        const { profileId } = requestOf(fleetCommands.takeProfile, command);
        const [use] = await running.app.db.sql
          .selectFrom("profile_uses")
          .select("version")
          .where("session_id", "=", context?.sessionId ?? "")
          .execute();
        await packing;
        yield create(ProfileChunkSchema, { profileId, version: BigInt(use?.version ?? 0), engine: "chromium" });
        const part = 256 * 1024;
        for (let left = storeSize; left > 0; left -= part) {
          yield create(ProfileChunkSchema, { data: Buffer.alloc(Math.min(left, part), `${left} `) });
        }
      },
    },
  });
});
afterAll(() => running[Symbol.asyncDispose]());

type Caller = Awaited<ReturnType<SessionsApp["caller"]>>;

const createProfile = (call: Caller, name = "Shop") =>
  profiles.create(call(), create(CreateProfileRequestSchema, { name, labels: { a: "b" } }));

const get = (call: Caller, id: string) => profiles.get(call(), create(GetProfileRequestSchema, { id }));

const launch = (call: Caller, profileId: string, runtime?: string) =>
  running.sessions.create(call(), create(CreateSessionRequestSchema, { profileId, ...(runtime && { runtime }) }));

const destroy = (call: Caller, id: string) =>
  running.sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));

async function save(call: Caller, profileId: string, bytes: number): Promise<void> {
  storeSize = bytes;
  const { id } = await launch(call, profileId);
  await destroy(call, id);
  await expect.poll(async () => (await get(call, profileId)).activeSessionId, { timeout: 10_000 }).toBeUndefined();
}

const eventsOf = (subject: string) =>
  running.app.db.sql
    .selectFrom("events")
    .select(["type", "data"])
    .where("subject", "=", subject)
    .orderBy("position")
    .execute();

test("creates, returns, changes and deletes a profile", async () => {
  const call = await running.caller();
  const made = await createProfile(call);
  expect(made).toMatchObject({
    id: expect.stringMatching(/^prf_[0-9a-z]{26}$/),
    name: "Shop",
    labels: { a: "b" },
    sizeBytes: 0n,
  });
  expect(made.engine).toBeUndefined();
  const { id } = made;
  const change = (paths: string[], fields: object) =>
    profiles.update(call(), create(UpdateProfileRequestSchema, { id, ...fields, updateMask: { paths } }));
  expect(await change(["description"], { description: "For tests" })).toMatchObject({
    name: "Shop",
    description: "For tests",
  });
  const cleared = await change(["description", "labels", "name"], { name: "Bank" });
  expect([cleared.name, cleared.description, cleared.labels]).toEqual(["Bank", undefined, {}]);
  await expect(change(["name"], {})).rejects.toMatchObject({ slug: "validation-failed", errors: [{ field: "name" }] });
  expect(await get(call, id)).toEqual(cleared);
  await profiles.delete(call(), create(DeleteProfileRequestSchema, { id }));
  await expect(get(call, id)).rejects.toMatchObject({ slug: "not-found" });
});

test("lists an account's own profiles in pages, newest first", async () => {
  const call = await running.caller();
  const stranger = await running.caller();
  const ids: string[] = [];
  for (let index = 0; index < 3; index += 1) ids.unshift((await createProfile(call)).id);
  const first = await profiles.list(call(), create(ListProfilesRequestSchema, { limit: 2 }));
  const cursor = first.nextCursor ?? "";
  const second = await profiles.list(call(), create(ListProfilesRequestSchema, { limit: 2, cursor }));
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids);
  expect([first.hasMore, second.hasMore]).toEqual([true, false]);
  expect((await profiles.list(stranger(), create(ListProfilesRequestSchema))).data).toEqual([]);
  for (const id of [...ids, "prf_x"]) {
    const notFound = { slug: "not-found", detail: "no profile has this id" };
    await expect(get(stranger, id)).rejects.toMatchObject(notFound);
    await expect(profiles.delete(stranger(), create(DeleteProfileRequestSchema, { id }))).rejects.toMatchObject(
      notFound,
    );
    await expect(launch(stranger, id)).rejects.toMatchObject(notFound);
  }
});

test("limits an account to its tier's number of profiles", async () => {
  const call = await running.caller("personal");
  const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => createProfile(call)));
  const refused = attempts.filter((attempt) => attempt.status === "rejected");
  expect(refused).toHaveLength(3);
  for (const { reason } of refused) expect(reason).toMatchObject({ slug: "tier-limit" });
  // The account's current tier counts, not the caller's cached one.
  const { accountId, tier } = call().principal;
  await running.app.db.sql.updateTable("accounts").set({ tier: "api_builder" }).where("id", "=", accountId).execute();
  expect([tier, (await createProfile(call)).createdAt]).toEqual(["personal", expect.anything()]);
});

test("assigns a profile to one of many sessions, and keeps it while it is in use", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  const attempts = await Promise.allSettled(Array.from({ length: 6 }, () => launch(call, id)));
  const [winner] = attempts.filter((attempt) => attempt.status === "fulfilled").map(({ value }) => value);
  const refused = attempts.filter((attempt) => attempt.status === "rejected");
  expect([winner?.profileId, refused.length]).toEqual([id, 5]);
  const extensions = { active_session_id: winner?.id };
  for (const { reason } of refused) expect(reason).toMatchObject({ slug: "profile-in-use", extensions });
  expect(await get(call, id)).toMatchObject({ activeSessionId: winner?.id });
  const deletion = create(DeleteProfileRequestSchema, { id });
  await expect(profiles.delete(call(), deletion)).rejects.toMatchObject({ slug: "conflict" });
  await destroy(call, winner?.id ?? "");
  // The deletion waits for the save.
  await profiles.delete(call(), deletion);
});

test("restores the last save in the next session, and rejects another engine", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  await save(call, id, 3 * mebibyte + 5);
  const saved = await get(call, id);
  expect(saved).toMatchObject({ engine: "chromium", sizeBytes: BigInt(3 * mebibyte + 5) });
  expect(saved.savedAt).toBeDefined();
  const session = await launch(call, id, "chromium");
  const bytes = restored.get(session.id);
  expect([bytes?.length, bytes?.subarray(-5).toString()]).toEqual([3 * mebibyte + 5, "5 5 5"]);
  await destroy(call, session.id);
  await expect(launch(call, id, "firefox")).rejects.toMatchObject({ slug: "driver-not-integrated" });

  const kept = await running.app.db.sql.selectFrom("profile_chunks").select("data").execute();
  expect(kept.every(({ data }) => !data.includes("5 5 5"))).toBe(true);
});

test("waits for a save in flight when a session is created, and names its session after a timeout", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  const { id: first } = await launch(call, id);
  const { promise, resolve } = Promise.withResolvers<void>();
  packing = promise;
  await destroy(call, first);
  await expect(launch(call, id)).rejects.toMatchObject({
    slug: "profile-in-use",
    extensions: { active_session_id: first },
  });
  const waiting = launch(call, id);
  resolve();
  packing = Promise.resolve();
  const { id: second } = await waiting;
  expect(restored.has(second)).toBe(true);
  await destroy(call, second);
});

test("rejects a session when the account's storage is full, and a save that would exceed it", async () => {
  const call = await running.caller("free");
  const { id } = await createProfile(call);
  await save(call, id, 9 * mebibyte);
  storeSize = 11 * mebibyte;
  const { id: session } = await launch(call, id);
  await destroy(call, session);
  await expect
    .poll(() => eventsOf(session).then((all) => all.at(-1)), { timeout: 20_000 })
    .toMatchObject({
      type: "session.profile_save_failed",
      data: {
        session_id: session,
        profile_id: id,
        detail: expect.stringContaining("bytes of 10485760"),
      },
    });
  expect(await get(call, id)).toMatchObject({ sizeBytes: BigInt(9 * mebibyte) });
  await save(call, id, 10 * mebibyte);
  await expect(launch(call, id)).rejects.toMatchObject({
    slug: "storage-quota-exceeded",
    extensions: { used_bytes: 10 * mebibyte, cap_bytes: 10 * mebibyte, tier: "free" },
  });
});

/** Restarts the worker: its sessions are lost, but it still has their profiles. */
async function restartWorker(shelved: readonly string[], failure = ""): Promise<void> {
  worker.held.clear();
  await worker.register({ bootId: randomUUID() });
  for (const id of shelved) worker.shelved.set(id, { placementEpoch: 1n, failure });
  await worker.heartbeat();
}

test("accepts the save of a returning worker, unless a newer session uses the profile", async () => {
  const call = await running.caller();
  storeSize = 1_000;
  const [saved, late] = [(await createProfile(call)).id, (await createProfile(call)).id];
  const [first, second] = [(await launch(call, saved)).id, (await launch(call, late)).id];
  await restartWorker([]);
  const third = await launch(call, late);
  for (const id of [first, second]) worker.shelved.set(id, { placementEpoch: 1n, failure: "" });
  await expect.poll(() => [...worker.shelved.keys()], { timeout: 10_000 }).toEqual([]);

  expect((await get(call, saved)).sizeBytes).toBe(1_000n);
  const { sizeBytes, activeSessionId } = await get(call, late);
  expect([sizeBytes, activeSessionId]).toEqual([0n, third.id]);
  const ends = ["session.created", "session.live", "session.failed"];
  expect((await eventsOf(first)).map(({ type }) => type)).toEqual(ends);
  expect((await eventsOf(second)).map(({ type }) => type)).toEqual([...ends, "session.profile_save_failed"]);
  await destroy(call, third.id);
});

test("keeps a profile for 20 s after its session's end, and waits 10 minutes for its save", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  const { promise: packed, resolve: pack } = Promise.withResolvers<void>();
  packing = packed;
  const { id: session } = await launch(call, id);
  await destroy(call, session);
  const fromNow = (column: string) => sql<number>`extract(epoch from ${sql.ref(column)} - clock_timestamp())::float`;
  const { held, due } = await running.app.db.sql
    .selectFrom("profile_uses")
    .select([fromNow("held_until").as("held"), fromNow("due_at").as("due")])
    .where("session_id", "=", session)
    .executeTakeFirstOrThrow();
  pack();
  expect([Math.ceil(held / 10), Math.ceil(due / 60)]).toEqual([2, 10]);
});

test("rejects a save when the profile has a newer version than the session restored", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  await save(call, id, 1_000);
  const { promise: packed, resolve: pack } = Promise.withResolvers<void>();
  packing = packed;
  const { id: late } = await launch(call, id);
  await destroy(call, late);
  const { db } = running.app;
  await db.sql.updateTable("profiles").set({ version: "7" }).where("id", "=", id).execute();
  storeSize = 2_000;
  pack();
  const lastEvent = async () => (await eventsOf(late)).at(-1);
  await expect.poll(lastEvent, { timeout: 20_000 }).toMatchObject({
    type: "session.profile_save_failed",
    data: { session_id: late, profile_id: id, detail: "the profile has changed since the session started" },
  });
  expect((await get(call, id)).sizeBytes).toBe(1_000n);
  const stores = db.sql.selectFrom("profile_stores").select("id").where("profile_id", "=", id);
  await expect.poll(() => stores.execute(), { timeout: 20_000 }).toHaveLength(1);
});

test.each([
  ["an empty store", async () => undefined, "the worker sent an empty store"],
  [
    "nothing to save",
    () => Promise.reject(fail("not-found", {}, { detail: "the profile is missing" })),
    "the profile is missing",
  ],
])("a save fails at once if the worker has %s", async (_, pack, detail) => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  const { id: session } = await launch(call, id);
  [storeSize, packing] = [0, pack()];
  packing.catch(() => undefined);
  await destroy(call, session);
  const last = () => eventsOf(session).then((all) => all.at(-1));
  await expect.poll(last, { timeout: 10_000 }).toMatchObject({ type: "session.profile_save_failed", data: { detail } });
  packing = Promise.resolve();
});

test("reports once that a worker could not save, and releases the profile", async () => {
  const call = await running.caller();
  const { id } = await createProfile(call);
  const session = await launch(call, id);
  await restartWorker([session.id], "the disk is full");
  await restartWorker([session.id], "the disk is full");
  const told = (await eventsOf(session.id)).filter(({ type }) => type === "session.profile_save_failed");
  expect(told).toMatchObject([{ data: { profile_id: id, detail: "the disk is full" } }]);
  expect((await get(call, id)).activeSessionId).toBeUndefined();
  expect([...worker.shelved.keys()]).toEqual([]);
});

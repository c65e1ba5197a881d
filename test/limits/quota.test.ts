import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProfileChunkSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { FakeWorker, requestOf } from "../support/fake-worker.ts";
import { moveTime } from "../support/move-time.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Rest, restClient } from "../support/rest.ts";

const workerToken = "a token of the tests alone";
const mebibyte = 2 ** 20;

let gateway: PeopleGateway;
let worker: FakeWorker;
/** Size of the next store that the worker packs. */
let storeSize = 0;
/** Number of saves per profile. */
const versions = new Map<string, bigint>();

beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
  worker = new FakeWorker({
    control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
    token: workerToken,
    slots: 20,
    handlers: {
      async *takeProfile(_call, command) {
        const { profileId } = requestOf(fleetCommands.takeProfile, command);
        yield create(ProfileChunkSchema, { profileId, version: versions.get(profileId) ?? 0n, engine: "chromium" });
        for (let left = storeSize; left > 0; left -= mebibyte / 4)
          yield create(ProfileChunkSchema, { data: Buffer.alloc(Math.min(left, mebibyte / 4), "store") });
      },
    },
  });
  await worker.start();
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

/** Creates an account. Its key stays valid when months pass. */
async function customer(limit: string, value: number): Promise<{ rest: Rest; accountId: string }> {
  const { rest, accountId } = await gateway.signUp();
  const { body } = await rest("/v1/api-keys", { name: "quota" });
  await gateway.admin("set-tier", "--account", accountId, "--tier", "api_builder");
  const until = ["--until", "2130-01-01T00:00:00Z"];
  await gateway.admin("override", "--account", accountId, "--limit", limit, "--value", String(value), ...until);
  return { rest: restClient({ url: gateway.url, key: body.key }), accountId };
}

/** Returns the events of an account, oldest first. */
async function quotaEvents(accountId: string): Promise<Record<string, unknown>[]> {
  const own = gateway.app.db.sql.selectFrom("events").select(["type", "data"]).where("subject", "=", accountId);
  return (await own.orderBy("position").execute()).map(({ type, data }) => ({ type, ...data }));
}

const nextMonth = (): Date => {
  const now = new Date(gateway.now());
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1));
};

test("used-up minutes are available again in the next UTC month, and each month has its own usage", async () => {
  const { rest, accountId } = await customer("session_minutes", 1);
  const made = await Promise.all(Array.from({ length: 10 }, () => rest("/v1/sessions", {})));
  expect(made.map(({ status }) => status)).toEqual(Array(10).fill(201));
  await moveTime(gateway.app.db, 7_000);
  gateway.pass(7_000);
  const endings = async () => {
    const { data } = (await rest("/v1/sessions?status=destroyed")).body;
    return data.map(({ ended_reason: reason }: { ended_reason: string }) => reason);
  };
  await expect.poll(endings, { timeout: 60_000, interval: 200 }).toEqual(Array(10).fill("quota"));
  const resetsAt = nextMonth().toISOString();
  const refused = await rest("/v1/sessions", {});
  expect([refused.status, refused.body.resets_at]).toEqual([429, resetsAt]);
  const told = [
    expect.objectContaining({ type: "quota.warning_80pct", resets_at: resetsAt }),
    expect.objectContaining({ type: "quota.exceeded", resets_at: resetsAt }),
  ];
  expect(await quotaEvents(accountId)).toEqual(told);
  const { body: before } = await rest("/v1/account/usage");

  gateway.pass(Date.parse(resetsAt) - gateway.now() + 60_000);
  const { body: fresh } = await rest("/v1/account/usage");
  expect(fresh).toEqual({
    month: resetsAt.slice(0, 7),
    days: [{ date: resetsAt.slice(0, 10), session_seconds: 0, sessions: 0, fetch_seconds: 0, fetches: 0 }],
  });
  // The past month now has all its days.
  const { body: past } = await rest(`/v1/account/usage?month=${before.month}`);
  expect(past.days.slice(0, before.days.length)).toEqual(before.days);
  expect(before.days.reduce((sum: number, { sessions }: { sessions: number }) => sum + sessions, 0)).toBe(10);
  expect(past.days.at(-1).date).toBe(new Date(Date.parse(resetsAt) - 1).toISOString().slice(0, 10));
  expect((await rest("/v1/sessions", {})).status).toBe(201);
  expect(await quotaEvents(accountId)).toEqual(told);
}, 120_000);

test("profile storage sends an event at 80 % and one at its limit, each once a month", async () => {
  const { rest, accountId } = await customer("profile_storage_bytes", mebibyte);
  const { body: profile } = await rest("/v1/profiles", { name: "Shop" });
  const path = `/v1/profiles/${profile.id}`;

  /** Saves the profile with a store of the given size. Returns the stored size. */
  async function save(bytes: number): Promise<number> {
    storeSize = bytes;
    const { body: session } = await rest("/v1/sessions", { profile_id: profile.id });
    expect(session.status).toBe("live");
    await rest(`/v1/sessions/${session.id}`, undefined, { method: "DELETE" });
    const holder = async () => (await rest(path)).body.active_session_id;
    await expect.poll(holder, { timeout: 20_000, interval: 50 }).toBe(null);
    const { size_bytes: size } = (await rest(path)).body;
    if (size === bytes) versions.set(profile.id, (versions.get(profile.id) ?? 0n) + 1n);
    return size;
  }

  const told = async () => (await quotaEvents(accountId)).map(({ type, used }) => [type, used]);
  expect(await save(mebibyte / 2)).toBe(mebibyte / 2);
  expect(await told()).toEqual([]);
  const large = Math.ceil(0.9 * mebibyte);
  expect(await save(large)).toBe(large);
  expect(await save(large)).toBe(large);
  const warned = [["quota.warning_80pct", large]];
  expect(await told()).toEqual(warned);
  for (const tooLarge of [1.5 * mebibyte, 2 * mebibyte]) expect(await save(tooLarge)).toBe(large);
  const exceeded = [...warned, ["quota.exceeded", 1.5 * mebibyte]];
  expect(await told()).toEqual(exceeded);
  for (const size of [mebibyte / 2, large]) expect(await save(size)).toBe(size);
  expect(await told()).toEqual(exceeded);
  gateway.pass(nextMonth().getTime() - gateway.now() + 60_000);
  for (const size of [mebibyte / 2, large]) expect(await save(size)).toBe(size);
  expect(await told()).toEqual([...exceeded, ...warned]);
  const [first] = await quotaEvents(accountId);
  expect(first).toMatchObject({ quota: "profile_storage_bytes", limit: mebibyte, tier: "api_builder" });
}, 120_000);

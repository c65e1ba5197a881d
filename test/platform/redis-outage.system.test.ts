import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { BucketState, Buckets } from "../../src/limits/buckets.ts";
import { createRedisBuckets } from "../../src/limits/redis-buckets.ts";
import { createLog } from "../../src/platform/log.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import { createRedisBus } from "../../src/platform/redis/redis-bus.ts";
import { RedisServer } from "../support/redis-server.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

const soon = { timeout: 20_000, interval: 20 };
const request = { bucket: "global", capacity: 60, refillPerSecond: 1 };

/** Milliseconds until a reply counts as missing. With 50, a busy machine would cause outages. */
const timeout = 10_000;

/** Connects the parts of a gateway that use Redis, and records its log messages. */
async function connect(options: { timeout?: number } = { timeout }) {
  const said: string[] = [];
  const registry = new Registry();
  const log = createLog("info", { write: (line) => said.push(JSON.parse(line).msg) });
  const redis = createRedis({ url: server.url, log, registry, ...options });
  const bus = createRedisBus(redis);
  const buckets = createRedisBuckets({ redis });
  onTestFinished(() => redis.stop());
  await redis.start();
  const metric = async (name: string): Promise<number | undefined> => {
    const found = await registry.getSingleMetric(name)?.get();
    return found?.values.reduce((sum, { value }) => sum + value, 0);
  };
  return { redis, bus, buckets, said, metric };
}

/** Takes a token and measures the duration. */
async function draw(buckets: Buckets, owner: string, from = request): Promise<BucketState & { milliseconds: number }> {
  const since = performance.now();
  const [state] = await buckets.take(owner, [from], Date.now());
  if (!state) throw new Error("there is no state");
  return { ...state, milliseconds: performance.now() - since };
}

test("a killed Redis costs the bus and half of each bucket, is logged once, and is used again when back", async () => {
  const [one, other] = [await connect(), await connect()];
  const received: string[] = [];
  other.bus.subscribe("session-ended", (id) => received.push(id));
  await expect.poll(async () => (await draw(one.buckets, "acc_killed")).capacity, soon).toBe(60);

  await server.kill();
  await expect.poll(() => [one.redis.isUp, other.redis.isUp], soon).toEqual([false, false]);
  const own: string[] = [];
  one.bus.subscribe("session-ended", (id) => own.push(id));
  one.bus.publish("session-ended", "missed");
  expect(own).toEqual(["missed"]);
  const missed = await one.metric("pilothouse_redis_missed_total");
  const drawn = one.buckets.take("acc_killed", [request], Date.now());
  expect(drawn).not.toBeInstanceOf(Promise);
  expect(await drawn).toMatchObject([{ allowed: true, capacity: 30 }]);
  expect(await one.metric("pilothouse_redis_missed_total")).toBe((missed ?? 0) + 1);
  expect(await one.metric("pilothouse_redis_up")).toBe(0);

  await server.restart();
  await expect.poll(() => [one.redis.isUp, other.redis.isUp], soon).toEqual([true, true]);
  const publish = () => {
    one.bus.publish("session-ended", "told");
    return received.includes("told");
  };
  await expect.poll(publish, soon).toBe(true);
  expect(received).not.toContain("missed");
  await expect.poll(async () => (await draw(one.buckets, "acc_killed")).capacity, soon).toBe(60);
  expect(await one.metric("pilothouse_redis_up")).toBe(1);
  expect(await one.metric("pilothouse_redis_outages_total")).toBe(1);
  expect(one.said).toEqual([expect.stringMatching(/^Redis is down/), "Redis is up again"]);
}, 60_000);

test("a Redis that hangs delays three requests in a row by 50 ms each and no later ones", async () => {
  const { redis, buckets, said, metric } = await connect({});
  await expect.poll(async () => (await draw(buckets, "acc_hung")).capacity, soon).toBe(60);
  server.hang();
  onTestFinished(() => server.resume());
  let waited = 0;
  while (redis.isUp) {
    waited += 1;
    const { allowed, milliseconds } = await draw(buckets, "acc_hung");
    expect(allowed).toBe(true);
    expect(milliseconds).toBeGreaterThan(40);
  }
  expect(waited).toBeLessThanOrEqual(3);
  // The rest of the bucket of 60, at most the share of one gateway.
  for (let count = 0; count < 20; count += 1) {
    expect(buckets.take("acc_hung", [request], Date.now())).toMatchObject([{ allowed: true }]);
  }
  expect(await metric("pilothouse_redis_missed_total")).toBeGreaterThanOrEqual(20);
  server.resume();
  await expect.poll(() => redis.isUp, soon).toBe(true);
  expect(said.slice(-2)).toEqual([expect.stringMatching(/^Redis is down/), "Redis is up again"]);
}, 60_000);

test("a Redis that pauses briefly under load does not count as down and takes each token once", async () => {
  const { redis, buckets, metric } = await connect({});
  const other = await connect();
  const slow = { ...request, refillPerSecond: 0.001 };
  await expect.poll(async () => (await draw(other.buckets, "acc_still", slow)).capacity, soon).toBe(60);
  const known = async () => (await buckets.read("acc_still", [slow], Date.now()))[0]?.remaining;
  const shared = async () => (await other.buckets.read("acc_still", [slow], Date.now()))[0]?.remaining;
  await expect.poll(known, soon).toBe(await shared());
  const before = (await shared()) ?? 0;
  // A busy machine may already have caused an outage.
  await expect.poll(() => redis.isUp, soon).toBe(true);
  const outages = await metric("pilothouse_redis_outages_total");
  server.hang();
  onTestFinished(() => server.resume());
  const during = await Promise.all(Array.from({ length: 10 }, () => draw(buckets, "acc_still", slow)));
  expect(redis.isUp).toBe(true);
  server.resume();
  // Decided locally from the last known state of the whole bucket.
  expect(during.map(({ allowed, capacity }) => [allowed, capacity])).toEqual(Array(10).fill([true, 60]));
  await expect.poll(shared, soon).toBe(before - 10);
  expect(await metric("pilothouse_redis_outages_total")).toBe(outages);
}, 60_000);

test("a gateway starts without Redis and uses it as soon as it is available", async () => {
  await server.kill();
  const { redis, buckets, said } = await connect();
  expect(redis.isUp).toBe(false);
  expect((await draw(buckets, "acc_early")).capacity).toBe(30);
  await server.restart();
  await expect.poll(() => redis.isUp, soon).toBe(true);
  await expect.poll(async () => (await draw(buckets, "acc_early")).capacity, soon).toBe(60);
  expect(said).toEqual([expect.stringMatching(/^Redis is down/), "Redis is up again"]);
}, 60_000);

test.each([
  [
    "a node of Redis Cluster",
    ["--cluster-enabled", "yes"],
    "Redis Cluster is not supported: use one Redis, or Redis Sentinel",
  ],
  ["a replica", ["--replicaof", "127.0.0.1", "1"], "expected the primary of Redis, got a replica"],
])("a gateway does not use %s, and logs why", async (_kind, options, reason) => {
  await using unfit = await RedisServer.start(...options);
  const lines: { msg: string; err?: { message: string } }[] = [];
  const log = createLog("info", { write: (line) => lines.push(JSON.parse(line)) });
  const redis = createRedis({ url: unfit.url, log, registry: new Registry() });
  onTestFinished(() => redis.stop());
  await redis.start();
  expect(redis.isUp).toBe(false);
  expect(lines.map(({ err }) => err?.message)).toEqual([reason]);
});

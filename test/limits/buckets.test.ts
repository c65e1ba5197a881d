import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BucketRequest, type BucketState, type Buckets, createBuckets } from "../../src/limits/buckets.ts";
import { createRedisBuckets } from "../../src/limits/redis-buckets.ts";
import { bucketNames, tiers } from "../../src/limits/tiers.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createRedis, type Redis } from "../../src/platform/redis/redis.ts";
import { silentLog } from "../support/database.ts";
import { RedisServer } from "../support/redis-server.ts";

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  redis = createRedis({ url: server.url, log: silentLog, registry: createMetrics(), timeoutMs: 10_000 });
  await redis.start();
});
afterAll(async () => {
  redis.stop();
  await server[Symbol.asyncDispose]();
});

const kinds: [kind: string, make: () => Buckets][] = [
  ["in memory", createBuckets],
  ["in Redis", () => createRedisBuckets({ redis, callersClock: true })],
];

const request = (capacity = 3, refillPerSecond = 1, bucket = "global"): BucketRequest => ({
  bucket,
  capacity,
  refillPerSecond,
});

let owners = 0;

/** Creates an owner with unused buckets. */
function fresh(make: () => Buckets) {
  const buckets = make();
  owners += 1;
  const owner = `acc_${owners}`;
  const takeAll = async (at: number, ...requests: BucketRequest[]) => buckets.take(owner, requests, at);
  const take = async (at: number, capacity?: number, rate?: number): Promise<BucketState> => {
    const [state] = await takeAll(at, request(capacity, rate));
    if (!state) throw new Error("there is no state");
    return state;
  };
  return { buckets, owner, take, takeAll };
}

describe.each(kinds)("buckets %s", (_kind, make) => {
  test("refund a token up to their capacity", async () => {
    const { buckets, owner, take } = fresh(make);
    for (let count = 0; count < 3; count += 1) await take(0);
    expect(await take(0)).toMatchObject({ allowed: false });
    expect(await buckets.refund(owner, [request()], 0)).toMatchObject([{ remaining: 1, resetAt: 2 }]);
    expect(await take(0)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await take(0)).toMatchObject({ allowed: false });
    expect(await buckets.refund(owner, [request()], 60_000)).toMatchObject([{ remaining: 3 }]);
  });

  test("allow a burst of their capacity, then the refill rate", async () => {
    const { take } = fresh(make);
    const steps: [at: number, allowed: boolean, remaining: number, resetAt: number, retryAfterSeconds: number][] = [
      [0, true, 2, 1, 0],
      [0, true, 1, 2, 0],
      [0, true, 0, 3, 0],
      [0, false, 0, 3, 1],
      [999, false, 0, 3, 1],
      [1_000, true, 0, 4, 0],
      [3_500, true, 1, 5, 0],
      [60_000, true, 2, 61, 0],
    ];
    for (const [at, allowed, remaining, resetAt, retryAfterSeconds] of steps) {
      const expected = { bucket: "global", allowed, capacity: 3, remaining, resetAt, retryAfterSeconds };
      expect(await take(at)).toEqual(expected);
    }
  });

  test("return the delay of a slow refill", async () => {
    const { take } = fresh(make);
    expect((await take(0, 1, 1 / 60)).allowed).toBe(true);
    expect(await take(30_000, 1, 1 / 60)).toMatchObject({ allowed: false, retryAfterSeconds: 30, resetAt: 60 });
  });

  test("lose no refill between many small steps", async () => {
    const { take } = fresh(make);
    let allowed = 0;
    for (let at = 0; at < 5_000; at += 1) if ((await take(at, 90, 90)).allowed) allowed += 1;
    expect(allowed).toBeGreaterThanOrEqual(539);
    expect(allowed).toBeLessThanOrEqual(540);
  });

  test("clamp to a smaller capacity and tolerate a clock that steps back", async () => {
    const { take } = fresh(make);
    await take(10_000, 100, 1);
    expect((await take(10_000, 5, 1)).remaining).toBe(4);
    expect((await take(0, 5, 1)).remaining).toBe(3);
    expect((await take(10_000, 5, 1)).remaining).toBe(2);
  });

  test("can be inspected without taking a token, separately for each bucket", async () => {
    const { buckets, owner, take } = fresh(make);
    await take(0);
    expect(buckets.peek(owner, request(), 0).remaining).toBe(2);
    expect(buckets.peek(owner, request(), 0).remaining).toBe(2);
    expect(buckets.peek("acc_other", request(), 0)).toMatchObject({ remaining: 3, resetAt: 0 });
    expect(buckets.peek(owner, request(3, 1, "other"), 0).remaining).toBe(3);
  });

  test("are taken for a request either all or not at all", async () => {
    const { takeAll } = fresh(make);
    const [wide, narrow] = [request(10, 1, "wide"), request(1, 1, "narrow")];
    const allowed = await takeAll(0, wide, narrow);
    expect(allowed.map((state) => [state.allowed, state.remaining])).toEqual([
      [true, 9],
      [true, 0],
    ]);
    for (let refused = 0; refused < 3; refused += 1) {
      const states = await takeAll(0, wide, narrow);
      expect(states.map((state) => [state.allowed, state.remaining])).toEqual([
        [true, 9],
        [false, 0],
      ]);
    }
    expect((await takeAll(0, wide))[0]).toMatchObject({ allowed: true, remaining: 8 });
  });
});

test("full buckets in memory are deleted", () => {
  const buckets = createBuckets();
  for (let key = 0; key < 10_000; key += 1) buckets.take(`acc_${key}`, [request()], key * 100);
  expect(buckets.size).toBeLessThan(100);
});

test("buckets in Redis are shared by all gateways, use the clock of Redis, and are deleted when full", async () => {
  const [one, other] = [createRedisBuckets({ redis }), createRedisBuckets({ redis })];
  const hour = 3_600_000;
  const left = async (buckets: Buckets, now: number) => {
    const [state] = await buckets.take("acc_shared", [request(5, 1 / 60)], now);
    return state?.remaining;
  };
  // The clocks of the two gateways differ by an hour.
  expect([await left(one, hour), await left(other, 0), await left(one, hour), await left(other, 0)]).toEqual([
    4, 3, 2, 1,
  ]);
  const [filled] = await one.take("acc_quick", [request(2, 1_000)], 0);
  expect(filled).toMatchObject({ allowed: true, remaining: 1 });
  const exists = (owner: string) =>
    redis.run("buckets", (client) => client.exists(`pilothouse:bucket:{${owner}}:global`));
  expect(await exists("acc_shared")).toBe(1);
  await expect.poll(() => exists("acc_quick")).toBe(0);
});

test("buckets in Redis work after the script cache is flushed", async () => {
  const { take } = fresh(() => createRedisBuckets({ redis }));
  // One token per hour, so that none is added during the test on a slow machine.
  const rate = 1 / 3_600;
  await take(0, 3, rate);
  await redis.run("buckets", (client) => client.scriptFlush());
  expect(await take(0, 3, rate)).toMatchObject({ allowed: true, remaining: 1 });
});

test("the tiers have the bucket sizes of the interface", () => {
  const sizes = (tier: string) =>
    bucketNames.map((name) => {
      const { capacity, refillPerSecond } = tiers.get(tier).buckets[name];
      return [capacity, Math.round(refillPerSecond * 60)];
    });
  expect(sizes("free")).toEqual([
    [60, 60],
    [5, 1],
    [20, 12],
    [240, 3_600],
  ]);
  expect(sizes("personal")).toEqual([
    [120, 120],
    [10, 2],
    [40, 20],
    [360, 5_400],
  ]);
  expect(sizes("api_builder")).toEqual([
    [1_800, 1_800],
    [60, 60],
    [300, 180],
    [600, 9_000],
  ]);
});

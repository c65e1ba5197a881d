import { expect, test } from "vitest";
import { createBuckets } from "../../src/limits/buckets.ts";
import { bucketNames, tiers } from "../../src/limits/tiers.ts";

const take = (buckets: ReturnType<typeof createBuckets>, at: number, capacity = 3, rate = 1) =>
  buckets.take("acc_1", "global", capacity, rate, at);

test("should allow a burst of its capacity and then as much as flows in", () => {
  const buckets = createBuckets();
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
    expect(take(buckets, at)).toEqual({ allowed, capacity: 3, remaining, resetAt, retryAfterSeconds });
  }
});

test("should say how long a slow bucket takes", () => {
  const buckets = createBuckets();
  expect(take(buckets, 0, 1, 1 / 60).allowed).toBe(true);
  expect(take(buckets, 30_000, 1, 1 / 60)).toMatchObject({ allowed: false, retryAfterSeconds: 30, resetAt: 60 });
});

test("should not lose what flows in between many small steps", () => {
  const buckets = createBuckets();
  let allowed = 0;
  for (let at = 0; at < 5_000; at += 1) if (take(buckets, at, 90, 90).allowed) allowed += 1;
  expect(allowed).toBeGreaterThanOrEqual(539);
  expect(allowed).toBeLessThanOrEqual(540);
});

test("should clamp to a smaller capacity, and take no harm from a clock that steps back", () => {
  const buckets = createBuckets();
  take(buckets, 10_000, 100, 1);
  expect(take(buckets, 10_000, 5, 1).remaining).toBe(4);
  expect(take(buckets, 0, 5, 1).remaining).toBe(3);
  expect(take(buckets, 10_000, 5, 1).remaining).toBe(2);
});

test("should look without drawing, and keep buckets apart", () => {
  const buckets = createBuckets();
  take(buckets, 0);
  expect(buckets.look("acc_1", "global", 3, 1, 0).remaining).toBe(2);
  expect(buckets.look("acc_1", "global", 3, 1, 0).remaining).toBe(2);
  expect(buckets.look("acc_2", "global", 3, 1, 0)).toMatchObject({ remaining: 3, resetAt: 0 });
  expect(buckets.look("acc_1", "other", 3, 1, 0).remaining).toBe(3);
});

test("should forget buckets that are full again", () => {
  const buckets = createBuckets();
  for (let key = 0; key < 10_000; key += 1) buckets.take(`acc_${key}`, "global", 3, 1, key * 100);
  expect(buckets.size).toBeLessThan(100);
});

test("should have the interface's bucket sizes", () => {
  const sizes = (tier: string) =>
    bucketNames.map((name) => {
      const { capacity, refillPerSecond } = tiers.bucket(tier, name);
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

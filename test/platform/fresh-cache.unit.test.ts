import { expect, test } from "vitest";
import { createFreshCache } from "../../src/platform/fresh-cache.ts";

function cacheOf(load: (key: string) => Promise<number | undefined>) {
  let time = 0;
  const cache = createFreshCache({
    load,
    isAway: (error) => error === "away",
    freshFor: 5,
    staleFor: 60,
    patience: 20,
    capacity: 2,
    clock: { monotonic: () => time },
  });
  return { cache, wait: (milliseconds: number) => (time += milliseconds) };
}

test("should load once for all who ask at the same time", async () => {
  let loads = 0;
  const { cache } = cacheOf(async () => ++loads);
  expect(await Promise.all([cache.get("a"), cache.get("a"), cache.get("a")])).toEqual([1, 1, 1]);
  expect(await cache.get("a")).toBe(1);
});

test("should load anew when an answer is old", async () => {
  let loads = 0;
  const { cache, wait } = cacheOf(async () => ++loads);
  await cache.get("a");
  wait(5);
  expect(cache.peek("a")).toBeUndefined();
  expect(await cache.get("a")).toBe(2);
});

test("should not keep what was forgotten while it was loaded", async () => {
  const loads = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  let count = 0;
  const { cache } = cacheOf(() => loads[count++]?.promise ?? Promise.reject(new Error("too many loads")));
  const first = cache.get("a");
  cache.forget("a");
  const second = cache.get("a");
  loads[1]?.resolve(2);
  expect(await second).toBe(2);
  loads[0]?.resolve(1);
  expect(await first).toBe(1);
  expect(cache.peek("a")).toBe(2);
});

test("should forget the answers that are meant, and what is being loaded", async () => {
  const late = Promise.withResolvers<number>();
  const { cache } = cacheOf((key) => (key === "late" ? late.promise : Promise.resolve(key.length)));
  await cache.get("a");
  await cache.get("bb");
  const loading = cache.get("late");
  cache.forgetIf((_key, length) => length === 2);
  late.resolve(4);
  expect(await loading).toBe(4);
  expect(["a", "bb", "late"].map((key) => cache.peek(key))).toEqual([1, undefined, undefined]);
});

test("should answer from memory while the truth is away, for as long as that may be", async () => {
  let answer: () => Promise<number> = async () => 1;
  const { cache, wait } = cacheOf(() => answer());
  await cache.get("a");
  answer = () => Promise.reject("away");
  wait(59);
  expect(await cache.get("a")).toBe(1);
  wait(1);
  await expect(cache.get("a")).rejects.toBe("away");
  answer = () => Promise.reject("broken");
  await expect(cache.get("b")).rejects.toBe("broken");
});

test("should forget the least recently used beyond its capacity", async () => {
  const { cache } = cacheOf(async () => 1);
  for (const key of ["a", "b", "a", "c"]) await cache.get(key);
  expect([cache.peek("a"), cache.peek("b"), cache.peek("c")]).toEqual([1, undefined, 1]);
});

test("should not wait long for a truth that hangs, while an old answer is good", async () => {
  let answer: () => Promise<number> = async () => 1;
  const { cache, wait } = cacheOf(() => answer());
  await cache.get("a");
  const hanging = Promise.withResolvers<number>();
  answer = () => hanging.promise;
  wait(59);
  expect(await cache.get("a")).toBe(1);
  hanging.resolve(2);
  await expect.poll(() => cache.peek("a")).toBe(2);
});

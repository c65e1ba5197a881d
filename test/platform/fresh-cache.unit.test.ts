import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createBearers } from "../../src/identity/bearers.ts";
import type { BearerKind, Credential } from "../../src/kernel/bearer-kind.ts";
import { createTerms } from "../../src/legal/terms.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { fail } from "../../src/platform/errors.ts";
import { createFreshCache } from "../../src/platform/fresh-cache.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { DatabaseUnavailable } from "../../src/platform/postgres/database-unavailable.ts";
import { hashSecret } from "../../src/platform/secrets/secrets.ts";
import { createSessionRoutes } from "../../src/sessions/commands/session-routes.ts";
import type { Feed } from "../../src/status/feed.ts";
import { createHistory } from "../../src/status/history.ts";
import { silentLog } from "../support/database.ts";

function cacheOf(load: (key: string) => Promise<number | undefined>) {
  let time = 0;
  const cache = createFreshCache({
    load,
    isUnavailable: (error) => error === "away",
    freshFor: 5,
    staleFor: 60,
    maxWait: 20,
    capacity: 2,
    clock: { monotonic: () => time },
  });
  return { cache, wait: (milliseconds: number) => (time += milliseconds) };
}

test("loads once for concurrent callers", async () => {
  let loads = 0;
  const { cache } = cacheOf(async () => ++loads);
  expect(await Promise.all([cache.get("a"), cache.get("a"), cache.get("a")])).toEqual([1, 1, 1]);
  expect(await cache.get("a")).toBe(1);
});

test("reloads an old entry", async () => {
  let loads = 0;
  const { cache, wait } = cacheOf(async () => ++loads);
  await cache.get("a");
  wait(5);
  expect(cache.peek("a")).toBeUndefined();
  expect(await cache.get("a")).toBe(2);
});

test("a renewed entry is loaded at once if it was in use", async () => {
  const loads: string[] = [];
  const { cache, wait } = cacheOf(async (key) => loads.push(key));
  cache.renew("a");
  expect(loads).toEqual([]);
  await cache.get("a");
  cache.renew("a");
  expect(cache.peek("a")).toBeUndefined();
  expect(loads).toEqual(["a", "a"]);
  expect([await cache.get("a"), loads.length]).toEqual([2, 2]);
  wait(5);
  cache.renew("a");
  expect(loads).toEqual(["a", "a"]);
});

test("does not keep an entry that was invalidated while it was loaded", async () => {
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

test("invalidates matching entries, including entries that are being loaded", async () => {
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

test("answers from memory while the source is down, without a time limit", async () => {
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

test("evicts the least recently used entries beyond its capacity", async () => {
  const { cache } = cacheOf(async () => 1);
  for (const key of ["a", "b", "a", "c"]) await cache.get(key);
  expect([cache.peek("a"), cache.peek("b"), cache.peek("c")]).toEqual([1, undefined, 1]);
});

test("a reload waits for a slow source, and returns the old entry if the source is down", async () => {
  let answer: () => Promise<number> = async () => 1;
  const { cache } = cacheOf(() => answer());
  await cache.get("a");
  answer = () => new Promise((resolve) => setTimeout(resolve, 60, 2));
  expect(await cache.reload("a")).toBe(2);
  answer = () => Promise.reject("away");
  expect(await cache.reload("a")).toBe(2);
});

test("stops waiting early for a source that hangs if the old entry is usable", async () => {
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

interface Use {
  readonly freshFor: number;
  readonly staleFor: number;
  /** Creates a reader that caches what `load` returns. Without a value the reader returns undefined or rejects. */
  make(clock: Clock, load: () => Promise<unknown[]>): () => Promise<unknown>;
}

/** Database that answers every query by `load`. */
function databaseOf(load: () => Promise<unknown[]>): Database {
  const query: object = new Proxy({}, { get: (_, name) => (name === "execute" ? load : () => query) });
  // Cast: the test implements only the members that are used.
  return { named: load, sql: query } as unknown as Database;
}

const sessionId = createIds(systemClock).next("ses");

const uses: Readonly<Record<string, Use>> = {
  bearers: {
    freshFor: 5_000,
    staleFor: 60_000,
    make(clock, load) {
      const credential = {
        principal: {},
        secretHash: hashSecret("s"),
        isRevoked: false,
        expiresAt: null,
        belongsTo: [],
      };
      const kind: BearerKind = {
        prefix: "phk_",
        parse: () => undefined,
        // Cast: the test reads no member of the credential.
        find: async () => load().then(() => new Map([["key_1", credential as unknown as Credential]])),
      };
      const parts = { kinds: [kind], bus: createLocalBus(), clock, log: silentLog, registry: new Registry() };
      const bearers = createBearers(parts);
      return () => bearers.lookUp({ kind, id: "key_1", secret: "s" });
    },
  },
  "routes of sessions": {
    freshFor: 5_000,
    staleFor: 60_000,
    make(clock, load) {
      const row = { account_id: "acc_1", placement_epoch: "1", control_epoch: "1" };
      const routes = createSessionRoutes({
        db: databaseOf(() => load().then(() => [row])),
        bus: createLocalBus(),
        clock,
      });
      return () => routes.find(sessionId, "acc_1");
    },
  },
  "terms of service": {
    freshFor: 5_000,
    staleFor: 60_000,
    make(clock, load) {
      const terms = createTerms({ db: databaseOf(load), clock });
      return async () => [await terms.outstanding("acc_1")];
    },
  },
  "days of components": {
    freshFor: 60_000,
    staleFor: 1e12,
    make(clock, load) {
      // Cast: the test implements only the members that are used.
      const feed = { now: { components: [{ component: "api" }], isDatabaseDown: false } } as unknown as Feed;
      const history = createHistory({ db: databaseOf(load), clock, feed });
      return async () => (await history.read()).get("api");
    },
  },
};

test.each(Object.entries(uses))(
  "%s are reloaded when they are old and are available while PostgreSQL is down",
  async (_, use) => {
    let now = 0;
    let loads = 0;
    let isDatabaseDown = false;
    const read = use.make({ ...systemClock, monotonic: () => now }, async () => {
      loads += 1;
      if (isDatabaseDown) throw fail("internal", {}, { cause: new DatabaseUnavailable(undefined) });
      return [];
    });
    await read();
    now += use.freshFor / 2;
    await read();
    expect(loads).toBe(1);
    now += use.freshFor;
    await read();
    expect(loads).toBe(2);
    isDatabaseDown = true;
    now += use.staleFor / 2;
    expect(await read()).toBeDefined();
    now += use.staleFor;
    if (use.staleFor < 1e12) await expect(read()).rejects.toMatchObject({ slug: "internal" });
  },
);

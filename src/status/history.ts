import { createFreshCache } from "../platform/fresh-cache.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import type { ComponentName } from "./components.ts";
import { type DayHistory, firstShown, historyOf } from "./days.ts";
import type { Feed } from "./feed.ts";
import type { Snapshot } from "./snapshot.ts";
import { readSpans } from "./store.ts";

/** Recent days of the components, cached by this gateway. */
export interface History {
  /** Returns the history. While PostgreSQL is down, returns the last known history, or an empty map. */
  read(): Promise<ReadonlyMap<ComponentName, DayHistory>>;
}

export interface HistoryParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly feed: Feed;
}

/**
 * Milliseconds. `freshFor`: age at which the history is read again. `maxWait`: see FreshCacheOptions. A change of
 * the current status also causes a read.
 */
const times = { freshFor: 60_000, maxWait: 300 };

/** Creates the history, which is read at most once a minute and after each change. */
export function createHistory({ db, clock, feed }: HistoryParts): History {
  const cache = createFreshCache<ReadonlyMap<ComponentName, DayHistory>>({
    async load() {
      const now = clock.now();
      const spans = await readSpans(db, new Date(firstShown(now)), new Date(now));
      return new Map(feed.now.components.map(({ component }) => [component, historyOf(spans, component, now)]));
    },
    isUnavailable: isDatabaseUnavailable,
    capacity: 1,
    clock,
    ...times,
    // While PostgreSQL is down, stale data is the best available.
    staleFor: Number.POSITIVE_INFINITY,
  });
  let known: Snapshot["components"] | undefined;
  return {
    async read() {
      const { components, isDatabaseDown } = feed.now;
      // While PostgreSQL is down, keeps the cached history.
      if (components !== known && !isDatabaseDown) {
        cache.expire("");
        known = components;
      }
      return (await cache.get("").catch(() => undefined)) ?? new Map();
    },
  };
}

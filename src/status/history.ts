import type { Clock } from "../platform/clock.ts";
import { createFreshCache } from "../platform/fresh-cache.ts";
import type { Database } from "../platform/postgres/database.ts";
import { isDatabaseAway } from "../platform/postgres/database-away.ts";
import type { ComponentName } from "./components.ts";
import { type DayHistory, firstShown, historyOf } from "./days.ts";
import type { Feed } from "./feed.ts";
import type { Snapshot } from "./snapshot.ts";
import { readSpans } from "./store.ts";

/** How the components were in the last days, as this gateway knows it. */
export interface History {
  /** Gives it; what was known while PostgreSQL is away. */
  read(): Promise<ReadonlyMap<ComponentName, DayHistory>>;
}

export interface HistoryParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly feed: Feed;
}

/** Milliseconds. A page that is a minute old is as good for what was; what is now changes it at once. */
const times = { freshFor: 60_000, patience: 300 };

/** Makes the history: read once a minute at most, and when something changes. */
export function createHistory({ db, clock, feed }: HistoryParts): History {
  const cache = createFreshCache<ReadonlyMap<ComponentName, DayHistory>>({
    async load() {
      const now = clock.now();
      const spans = await readSpans(db, new Date(firstShown(now)), new Date(now));
      return new Map(feed.now.components.map(({ component }) => [component, historyOf(spans, component, now)]));
    },
    isAway: isDatabaseAway,
    capacity: 1,
    clock,
    ...times,
    // While PostgreSQL is away nothing newer can be had.
    staleFor: Number.POSITIVE_INFINITY,
  });
  let known: Snapshot["components"] | undefined;
  return {
    async read() {
      const { components, isAway } = feed.now;
      // While PostgreSQL is away nothing newer can be had: what is kept is not given up for it.
      if (components !== known && !isAway) {
        cache.expire("");
        known = components;
      }
      return (await cache.get("").catch(() => undefined)) ?? new Map();
    },
  };
}

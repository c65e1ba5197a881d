import { pause } from "../platform/bounded-wait.ts";
import type { Bus } from "../platform/bus.ts";
import type { Database } from "../platform/database.ts";
import type { Log } from "../platform/log.ts";
import type { Cursor } from "./cursor.ts";
import { readEnd, readTail, type StoredEvent } from "./store.ts";

/** Milliseconds. The bus only wakes: whatever it loses is found by looking once a second. */
const pollEvery = 1_000;
/** After a wake-up that found nothing an older transaction is still open; look again soon, ever more slowly. */
const firstRetry = 10;
const batch = 500;

/** Follows the whole log once per gateway, for all who listen. */
export interface EventTail {
  /** Calls the listener with every event of a subject that settles from now on. */
  listen(subject: string, listener: (event: StoredEvent) => void): () => void;
  start(): void;
  stop(): Promise<void>;
}

/** Makes the tail; it reads from the moment it is started. */
export function createEventTail(db: Database, bus: Bus, log: Log): EventTail {
  const listeners = new Map<string, Set<(event: StoredEvent) => void>>();
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let unsubscribe: (() => void) | undefined;
  let cursor: Cursor | undefined;
  let woken = false;
  let sleep: AbortController | undefined;

  function wake(): void {
    woken = true;
    sleep?.abort();
  }

  function deliver(event: StoredEvent): void {
    for (const listener of listeners.get(event.subject) ?? []) listener(event);
  }

  /** Reads what has settled; says how much that was. */
  async function read(): Promise<number> {
    cursor ??= await readEnd(db);
    const events = await readTail(db, cursor, batch);
    events.forEach(deliver);
    cursor = events.at(-1)?.cursor ?? cursor;
    return events.length;
  }

  async function follow(): Promise<void> {
    let wait = pollEvery;
    while (!stopping.signal.aborted) {
      if (woken) wait = firstRetry;
      woken = false;
      const count = await read().catch((error: unknown) => {
        log.warn({ err: error }, "events cannot be read at the moment");
        return 0;
      });
      if (count === batch) continue;
      if (count > 0) wait = pollEvery;
      if (!woken && !stopping.signal.aborted) {
        sleep = new AbortController();
        await pause(wait, sleep.signal);
      }
      wait = Math.min(wait * 2, pollEvery);
    }
  }

  return {
    listen(subject, listener) {
      const set = listeners.get(subject) ?? new Set();
      listeners.set(subject, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(subject) === set) listeners.delete(subject);
      };
    },
    start() {
      if (running) return;
      unsubscribe = bus.subscribe("events", wake);
      running = follow();
    },
    async stop() {
      unsubscribe?.();
      stopping.abort();
      sleep?.abort();
      await running;
    },
  };
}

import { sleep } from "../platform/bounded-wait.ts";
import type { Bus } from "../platform/bus.ts";
import { createListeners } from "../platform/listeners.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Numbering } from "./numbering.ts";
import { readEnd, readEvents, type StoredEvent } from "./store.ts";

/** Milliseconds. The bus only wakes: whatever it loses, or a gateway that died did not number, is found once a second. */
const pollEvery = 1_000;
const batch = 500;

/** Follows the whole log once per gateway, for all who listen. */
export interface EventTail {
  /** Calls the listener with every event of a subject, or of an account, that is numbered from now on. */
  listen(owner: string, listener: (event: StoredEvent) => void): () => void;
  start(): void;
  stop(): Promise<void>;
}

/** What the tail reads. */
export interface EventTailParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly log: Log;
  readonly number: Numbering;
}

/** Makes the tail; it reads from the moment it is started. */
export function createEventTail({ db, bus, log, number }: EventTailParts): EventTail {
  const listeners = createListeners<StoredEvent>();
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let unsubscribe: (() => void) | undefined;
  let last: bigint | undefined;
  let woken = false;
  let sleeping: AbortController | undefined;

  function wake(): void {
    woken = true;
    sleeping?.abort();
  }

  /** Says whether there may be more. */
  async function read(): Promise<boolean> {
    if (!woken) await number();
    woken = false;
    last ??= await readEnd(db);
    const events = await readEvents(db, last, batch);
    for (const event of events)
      for (const owner of new Set([event.subject, event.accountId])) listeners.tell(owner, event);
    last = events.at(-1)?.number ?? last;
    return events.length === batch;
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      const hasMore = await read().catch((error: unknown) => {
        log.warn({ err: error }, "events cannot be read at the moment");
        return false;
      });
      if (hasMore || woken || stopping.signal.aborted) continue;
      sleeping = new AbortController();
      await sleep(pollEvery, sleeping.signal);
    }
  }

  return {
    listen: listeners.add,
    start() {
      if (running) return;
      unsubscribe = bus.subscribe("events", wake);
      running = follow();
    },
    async stop() {
      unsubscribe?.();
      stopping.abort();
      sleeping?.abort();
      await running;
    },
  };
}

import type { Bus } from "../platform/bus.ts";
import { createListeners } from "../platform/listeners.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJobParts } from "../platform/repeated-job.ts";
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
export interface EventTailParts extends RepeatedJobParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly number: Numbering;
}

/** Makes the tail; it reads from the moment it is started. */
export function createEventTail({ db, bus, number, ...parts }: EventTailParts): EventTail {
  const listeners = createListeners<StoredEvent>();
  let unsubscribe: (() => void) | undefined;
  let last: bigint | undefined;
  let woken = false;

  async function read(): Promise<void> {
    for (let count = batch; count === batch; ) {
      if (!woken) await number();
      woken = false;
      last ??= await readEnd(db);
      const events = await readEvents(db, last, batch);
      for (const event of events)
        for (const owner of new Set([event.subject, event.accountId])) listeners.tell(owner, event);
      last = events.at(-1)?.number ?? last;
      count = events.length;
    }
  }

  const job = createRepeatedJob(
    { run: read, every: pollEvery, complaint: "events cannot be read at the moment" },
    parts,
  );

  function wake(): void {
    woken = true;
    void job.runNow();
  }

  return {
    listen: listeners.add,
    start() {
      unsubscribe ??= bus.subscribe("events", wake);
      job.start();
      void job.runNow();
    },
    async stop() {
      unsubscribe?.();
      await job.stop();
    },
  };
}

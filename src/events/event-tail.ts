import { createListeners } from "../platform/listeners.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createRepeatedJob, type RepeatedJobParts } from "../platform/repeated-job.ts";
import type { Numbering } from "./numbering.ts";
import { hasNewEvents, readEvents, readLastNumber, type StoredEvent } from "./store.ts";

/** Milliseconds. Polling finds events whose bus message was lost, and events that a dead gateway left unnumbered. */
const pollEvery = 1_000;
const batch = 500;

/** Reads the new events of all accounts once per gateway, and notifies the listeners. */
export interface EventTail {
  /** Calls the listener with every new event of a subject or account. Returns the function to unsubscribe. */
  listen(owner: string, listener: (event: StoredEvent) => void): () => void;
  start(): void;
  stop(): Promise<void>;
}

export interface EventTailParts extends RepeatedJobParts, Pick<PlatformParts, "db" | "bus"> {
  readonly number: Numbering;
}

/** Creates the tail. Listeners receive events that are numbered after `start`. */
export function createEventTail({ db, bus, number, ...parts }: EventTailParts): EventTail {
  const listeners = createListeners<StoredEvent>();
  let unsubscribe: (() => void) | undefined;
  let last: bigint | undefined;
  let woken = false;

  async function read(): Promise<void> {
    for (let count = batch; count === batch; ) {
      if (!woken) {
        if (last !== undefined && !(await hasNewEvents(db, last))) return;
        await number();
      }
      woken = false;
      last ??= await readLastNumber(db);
      const events = await readEvents(db, last, batch);
      for (const event of events)
        for (const owner of new Set([event.subject, event.accountId])) listeners.notify(owner, event);
      last = events.at(-1)?.number ?? last;
      count = events.length;
    }
  }

  const job = createRepeatedJob({ run: read, every: pollEvery, failureMessage: "failed to read events" }, parts);

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

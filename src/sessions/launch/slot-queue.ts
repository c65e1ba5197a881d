import { publishChange } from "../../kernel/account-change.ts";
import { createListeners } from "../../platform/listeners.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { leaveQueue, renewWaits, type SlotWait } from "./slot-wait-store.ts";

/**
 * Milliseconds between renewals of queue places. Each renewal also reads the queue, in case a notification was lost.
 */
const renewEvery = 1_000;

/** A session or fetch that waits at the account's limit. */
export interface QueuedCreate extends SlotWait {
  /** Maximum number of concurrent sessions and fetch browsers of the account. */
  readonly limit: number;
  /** Time at which the wait ends, in milliseconds of `Clock.monotonic`. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/**
 * Sessions and fetches of a gateway that wait at their account's limit. Their order is in PostgreSQL. A gateway reads
 * the queue of an account once for all sessions and fetches that wait in the queue.
 */
export interface SlotQueue {
  /** Resolves when the session or fetch should try again, the time is up, or `signal` aborts. */
  wait(create: QueuedCreate): Promise<void>;
  /** Removes a session or fetch from the queue, and notifies those behind it. */
  leave(wait: SlotWait): Promise<void>;
}

/** Sessions and fetches of an account that wait on this gateway. */
interface AccountQueue {
  limit: number;
  /** Last reported place in the queue, by id of the session or fetch. Undefined before the first report. */
  readonly places: Map<string, number | undefined>;
  /** Functions that end the present waits, by id of the session or fetch. */
  readonly waiting: Map<string, () => void>;
  /** Reads the queue now. */
  check(): void;
}

export type SlotQueueParts = Pick<PlatformParts, "db" | "bus" | "clock" | "log">;

export function createSlotQueue({ db, bus, clock, log }: SlotQueueParts): SlotQueue {
  const queues = new Map<string, AccountQueue>();
  const freed = createListeners<undefined>();
  bus.subscribe("slot-freed", (accountId) => freed.notify(accountId, undefined));

  /** Reports changed places. Ends the waits of sessions and fetches that should try again. */
  async function advance(accountId: string, queue: AccountQueue): Promise<void> {
    const { places, running } = await renewWaits(db, accountId, [...queue.places.keys()]);
    for (const [id, before] of queue.places) {
      const place = places.get(id);
      queue.places.set(id, place);
      if (place !== undefined && place !== before)
        publishChange(bus, { accountId, resource: "session", id, change: "queued", place });
      // The first in the queue always tries again, in case the limit was raised. A session or fetch without a place
      // joins the queue again.
      if (place === undefined || place <= Math.max(1, queue.limit - running)) queue.waiting.get(id)?.();
    }
  }

  /** Renews the places of an account's sessions and fetches until none of them waits. */
  async function run(accountId: string, queue: AccountQueue): Promise<void> {
    let next = new AbortController();
    queue.check = () => next.abort();
    const unlisten = freed.add(accountId, queue.check);
    while (queue.places.size > 0) {
      next = new AbortController();
      await advance(accountId, queue).catch((error: unknown) => log.debug({ err: error }, "failed to read slot queue"));
      await clock.sleep(renewEvery, next.signal);
    }
    unlisten();
    queues.delete(accountId);
  }

  return {
    async wait(create) {
      const { accountId, id, limit, until, signal } = create;
      const turn = new AbortController();
      const known = queues.get(accountId);
      const queue = known ?? { limit, places: new Map(), waiting: new Map(), check: () => undefined };
      queues.set(accountId, queue);
      queue.limit = limit;
      queue.waiting.set(id, () => turn.abort());
      if (!queue.places.has(id)) queue.places.set(id, undefined);
      if (!known) void run(accountId, queue);
      else if (queue.places.get(id) === undefined) queue.check();
      await clock.sleep(until - clock.monotonic(), AbortSignal.any([turn.signal, signal]));
      queue.waiting.delete(id);
    },
    async leave({ accountId, id }) {
      queues.get(accountId)?.places.delete(id);
      // If PostgreSQL is unreachable, the place expires.
      await leaveQueue(db, id).catch((error: unknown) => log.debug({ err: error }, "failed to leave slot queue"));
      bus.publish("slot-freed", accountId);
    },
  };
}

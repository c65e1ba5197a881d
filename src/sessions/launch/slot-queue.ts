import { publishChange } from "../../kernel/account-change.ts";
import { createListeners } from "../../platform/listeners.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { leaveQueue, renewWaits, type SlotWait } from "./slot-wait-store.ts";

/** Milliseconds between renewals of places. Each renewal also reads the queue, in case a notification was lost. */
const renewEvery = 1_000;

/** A create that found no slot. */
export interface QueuedCreate extends SlotWait {
  /** Sessions that the account may run. */
  readonly limit: number;
  /** When the create stops waiting, in milliseconds of `Clock.monotonic`. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/**
 * Waiting creates of a gateway. Their order is in PostgreSQL. A gateway reads the queue of an account once for all
 * creates that wait there.
 */
export interface SlotQueue {
  /** Resolves when there may be a slot for the create, the time is up, or `signal` aborts. */
  wait(create: QueuedCreate): Promise<void>;
  /** Removes a create from the queue, and notifies the creates behind it. */
  leave(wait: SlotWait): Promise<void>;
}

/** Queue of an account on this gateway. */
interface AccountQueue {
  limit: number;
  /** Last reported place of each create, by id. */
  readonly places: Map<string, number | undefined>;
  /** Ends the wait of each create that waits now, by id. */
  readonly waiting: Map<string, () => void>;
  /** Reads the queue now. */
  check(): void;
}

export type SlotQueueParts = Pick<PlatformParts, "db" | "bus" | "clock" | "log">;

export function createSlotQueue({ db, bus, clock, log }: SlotQueueParts): SlotQueue {
  const queues = new Map<string, AccountQueue>();
  const freed = createListeners<undefined>();
  bus.subscribe("slot-freed", (accountId) => freed.notify(accountId, undefined));

  /** Reports changed places, and wakes the creates whose turn it is. */
  async function advance(accountId: string, queue: AccountQueue): Promise<void> {
    const { places, running } = await renewWaits(db, accountId, [...queue.places.keys()]);
    for (const [id, before] of queue.places) {
      const place = places.get(id);
      queue.places.set(id, place);
      if (place !== undefined && place !== before)
        publishChange(bus, { accountId, resource: "session", id, change: "queued", place });
      // The first create always tries again, in case the limit was raised. A create without a place joins again.
      if (place === undefined || place <= Math.max(1, queue.limit - running)) queue.waiting.get(id)?.();
    }
  }

  /** Renews the places of an account's creates until none of them is left. */
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

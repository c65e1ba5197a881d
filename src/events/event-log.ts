import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Event } from "../gen/pilothouse/v1/common_pb.ts";
import { fail } from "../platform/errors.ts";
import { eventPayload } from "../platform/event-payload.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import { deleteInBatches } from "../platform/sweep-task.ts";
import { toEventMessage } from "./event-message.ts";
import { createEventTail } from "./event-tail.ts";
import { createNumbering } from "./numbering.ts";
import { listenForEvents, type PendingEvents } from "./pending-events.ts";
import {
  advanceCursor,
  deleteOldEvents,
  type EventReference,
  ensureCursor,
  findEvent,
  findLastId,
  insertEvent,
  readLastNumber,
  readOwned,
  type StoredEvent,
  takeEvents,
  type WorkerEventKey,
} from "./store.ts";

/** Account and subject of an event. `workerKey` is set if a worker reported the event. */
export interface EventOwner {
  readonly accountId: string;
  readonly subject: string;
  readonly workerKey?: WorkerEventKey;
}

/** Events to follow: those of a subject, or of a whole account. */
export interface WatchOptions {
  readonly accountId: string;
  readonly subject?: string;
  readonly types?: ReadonlySet<string>;
  /** Identifier of the event after which to start. By default, only new events follow. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
  /**
   * Receives the identifier of the event after which the stream starts. Is not called if there is no such event yet.
   */
  readonly onStart?: ((eventId: string) => void) | undefined;
}

/** Log of all events, read by webhooks, streams and other consumers. */
export interface EventLog {
  /** Adds an event to the transaction of its change. Returns false if the same worker event was added before. */
  append<D extends DescMessage>(
    tx: Tx,
    owner: EventOwner,
    schema: D,
    data: MessageShape<D> & Message,
  ): Promise<boolean>;
  /**
   * Passes the next events, at most `limit`, to a named consumer in order. Handling and cursor share a transaction, so
   * each event is handled once. A new consumer starts with the oldest event. Events that are not consumed within 30
   * days are lost. Returns the number of events, or 0 if another gateway is running the consumer.
   */
  consume(consumer: string, limit: number, handle: EventHandler): Promise<number>;
  /**
   * Follows a subject or an account until the signal aborts. Subscribes when called, not at the first read. Rejects
   * with `not-found` if the log does not have the start event.
   */
  watch(options: WatchOptions): Promise<AsyncIterable<Event>>;
  /** Returns the type of an event, or undefined if the log does not have the event. */
  typeOf(event: EventReference): Promise<string | undefined>;
  /** Deletes expired events. */
  sweep(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

/** Handles events in the transaction that advances the cursor of their consumer. */
export type EventHandler = (tx: Tx, events: readonly StoredEvent[]) => Promise<void>;

export type EventLogParts = Pick<PlatformParts, "db" | "bus" | "ids" | "clock" | "log">;

const pageSize = 200;

/** Milliseconds between a reader's attempts to read events while PostgreSQL is unavailable. */
const retryEvery = 1_000;

/** Retention in days. */
const keptDays = 30;

function undefinedIfUnavailable(error: unknown): undefined {
  if (!isDatabaseUnavailable(error)) throw error;
}

export function createEventLog({ db, bus, ids, clock, log }: EventLogParts): EventLog {
  const number = createNumbering(db, bus);
  const tail = createEventTail({ db, bus, clock, log, number });
  /** Consumers with a stored cursor. */
  const withCursor = new Set<string>();

  /**
   * Returns the event number to start after. Numbers committed events first, so that only events committed later count
   * as new.
   */
  async function startOf({ after, accountId, subject }: WatchOptions): Promise<bigint> {
    await number();
    if (after === undefined) return readLastNumber(db);
    const found = await findEvent(db, { id: after, accountId, subject });
    if (!found) {
      const whose = subject ?? "the account";
      throw fail("not-found", {}, { detail: `${whose} has no event ${after || '""'}; events are kept for 30 days` });
    }
    return found.number;
  }

  /** Numbers committed events. On failure, event-tail.ts retries within a second. */
  function numberSoon(): void {
    number().catch((error: unknown) => log.debug({ err: error }, "failed to number events"));
  }

  const listen = ({ accountId, subject, signal }: WatchOptions): PendingEvents =>
    listenForEvents((listener) => tail.listen(subject ?? accountId, listener), signal);

  /** Yields stored events after a number. Retries while PostgreSQL is down. */
  async function* replay({ signal, ...owner }: WatchOptions, from: bigint): AsyncGenerator<StoredEvent> {
    for (let after = from; !signal.aborted; ) {
      const page = await readOwned(db, owner, after, pageSize).catch(undefinedIfUnavailable);
      if (page) yield* page;
      else await clock.sleep(retryEvery, signal);
      after = page?.at(-1)?.number ?? after;
      if (page && page.length < pageSize) return;
    }
  }

  /** Yields events from the table, then from memory, without duplicates. A lagging reader returns to the table. */
  async function* follow(options: WatchOptions, from: bigint, first: PendingEvents): AsyncGenerator<Event> {
    let last = from;
    for (let pending = first; !options.signal.aborted; pending = listen(options)) {
      try {
        for (const source of [replay(options, last), pending])
          for await (const event of source) {
            if (options.signal.aborted) return;
            if (event.number <= last) continue;
            last = event.number;
            if (options.types?.has(event.type) ?? true) yield toEventMessage(event);
          }
      } finally {
        pending.close();
      }
    }
  }

  return {
    async append(tx, { accountId, subject, workerKey }, schema, data) {
      const payload = eventPayload(schema, data);
      const id = ids.next("evt");
      tx.afterCommit(numberSoon);
      return insertEvent(tx, { id, accountId, subject, payload, workerKey });
    },
    async consume(consumer, limit, handle) {
      if (!withCursor.has(consumer)) await ensureCursor(db, consumer);
      withCursor.add(consumer);
      return db.transaction(async (tx) => {
        const batch = await takeEvents(tx, consumer, limit);
        const last = batch.at(-1);
        if (!last) return 0;
        await handle(tx, batch);
        advanceCursor(tx, consumer, last.number);
        return batch.length;
      });
    },
    async watch(options) {
      // Subscribes before finding the start, so that no event is missed in between.
      const pending = listen(options);
      try {
        const from = await startOf(options);
        const startId = options.onStart && (options.after ?? (await findLastId(db, options, from)));
        if (startId !== undefined) options.onStart?.(startId);
        return follow(options, from, pending);
      } catch (error) {
        pending.close();
        throw error;
      }
    },
    typeOf: async (event) => (await findEvent(db, event))?.type,
    sweep: () => deleteInBatches((limit) => deleteOldEvents(db, keptDays, limit)),
    start: () => tail.start(),
    stop: () => tail.stop(),
  };
}

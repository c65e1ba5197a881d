import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Event } from "../gen/pilothouse/v1/common_pb.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import { eventPayload } from "../platform/event-payload.ts";
import type { Ids } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import { isDatabaseAway } from "../platform/postgres/database-away.ts";
import { toEventMessage } from "./event-message.ts";
import { createEventTail } from "./event-tail.ts";
import { createNumbering } from "./numbering.ts";
import { listenForEvents, type PendingEvents } from "./pending-events.ts";
import {
  beginCursor,
  deleteOldEvents,
  type EventReference,
  findEvent,
  insertEvent,
  moveCursor,
  readEnd,
  readOwned,
  type StoredEvent,
  takeEvents,
  type WorkerEventKey,
} from "./store.ts";

/** Whose event it is, and the key of one that a worker reported. */
export interface EventOwner {
  readonly accountId: string;
  readonly subject: string;
  readonly workerKey?: WorkerEventKey;
}

/** What to follow: one thing, or all of an account. */
export interface WatchOptions {
  readonly accountId: string;
  readonly subject?: string;
  /** Only events of these types. */
  readonly types?: ReadonlySet<string>;
  /** Identifier of the event after which to begin; from now on without it. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
}

/** The one log of what happened: webhooks, streams and the audit log read it, so they cannot differ. */
export interface EventLog {
  /**
   * Adds an event to the transaction of the change that it tells of. False when a worker's event was added before.
   */
  append<D extends DescMessage>(
    tx: Tx,
    owner: EventOwner,
    schema: D,
    data: MessageShape<D> & Message,
  ): Promise<boolean>;
  /**
   * Hands a named consumer its next events, in order and at most so many, and moves it past them in the same
   * transaction: each event is handled once, whatever crashes. Begins with the oldest event that the log has, and loses
   * those that it has not taken after 30 days. Gives how many there were: none also while the same consumer is at work
   * elsewhere.
   */
  consume(consumer: string, limit: number, handle: EventHandler): Promise<number>;
  /**
   * Follows one thing, or an account, until the signal aborts. Listens from the moment it is called, not from the first read. Throws
   * `not-found` when the log does not have the event after which to begin.
   */
  watch(options: WatchOptions): Promise<AsyncIterable<Event>>;
  /** Finds the type of an event by its identifier. */
  typeOf(event: EventReference): Promise<string | undefined>;
  /** Deletes what is older than the log keeps. */
  sweep(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

/** Handles events in the transaction that moves their consumer on. */
export type EventHandler = (tx: Tx, events: readonly StoredEvent[]) => Promise<void>;

export interface EventLogParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
}

const pageSize = 200;

/** Milliseconds after which a reader that is behind tries again to reach PostgreSQL. */
const retryEvery = 1_000;

/** How long events are kept, and how many are deleted with one statement, so that none takes long. */
const retention = { days: 30, batch: 1_000 };

function undefinedWhileAway(error: unknown): undefined {
  if (!isDatabaseAway(error)) throw error;
}

/** Makes the log. */
export function createEventLog({ db, bus, ids, clock, log }: EventLogParts): EventLog {
  const number = createNumbering(db, bus);
  const tail = createEventTail({ db, bus, clock, log, number });
  /** Consumers that have a place in the log. */
  const begun = new Set<string>();

  /** Where to begin: what is committed by now is numbered before, so that "from now on" begins after it. */
  async function startOf({ after, accountId, subject }: WatchOptions): Promise<bigint> {
    await number();
    if (after === undefined) return readEnd(db);
    const found = await findEvent(db, { id: after, accountId, subject });
    if (!found) {
      const whose = subject ?? "the account";
      throw fail("not-found", {}, { detail: `${whose} has no event ${after || '""'}, or no longer` });
    }
    return found.number;
  }

  /** What fails is made up for within a second: see event-tail.ts. */
  function numberSoon(): void {
    number().catch((error: unknown) => log.debug({ err: error }, "events cannot be numbered at the moment"));
  }

  const listen = ({ accountId, subject, signal }: WatchOptions): PendingEvents =>
    listenForEvents((listener) => tail.listen(subject ?? accountId, listener), signal);

  /** All that is followed after a number. What cannot be read while PostgreSQL is away is asked for again. */
  async function* replay({ signal, ...owner }: WatchOptions, from: bigint): AsyncGenerator<StoredEvent> {
    for (let after = from; !signal.aborted; ) {
      const page = await readOwned(db, owner, after, pageSize).catch(undefinedWhileAway);
      if (page) yield* page;
      else await clock.sleep(retryEvery, signal);
      after = page?.at(-1)?.number ?? after;
      if (page && page.length < pageSize) return;
    }
  }

  /**
   * Reads the table first, then memory; whatever comes twice is told apart by its number. A reader that falls behind
   * begins again with the table.
   */
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
      if (!begun.has(consumer)) await beginCursor(db, consumer);
      begun.add(consumer);
      return db.transaction(async (tx) => {
        const batch = await takeEvents(tx, consumer, limit);
        const last = batch.at(-1);
        if (!last) return 0;
        await handle(tx, batch);
        moveCursor(tx, consumer, last.number);
        return batch.length;
      });
    },
    async watch(options) {
      // From now on, not from the first read.
      const pending = listen(options);
      try {
        return follow(options, await startOf(options), pending);
      } catch (error) {
        pending.close();
        throw error;
      }
    },
    typeOf: async (event) => (await findEvent(db, event))?.type,
    async sweep() {
      while ((await deleteOldEvents(db, retention.days, retention.batch)) === retention.batch);
    },
    start: () => tail.start(),
    stop: () => tail.stop(),
  };
}

import { create, type DescMessage, type JsonObject, type Message, type MessageShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../gen/pilothouse/v1/common_pb.ts";
import type { Bus } from "../platform/bus.ts";
import type { Database, Tx } from "../platform/database.ts";
import type { Ids } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import { type Cursor, isAfter } from "./cursor.ts";
import { createEventTail } from "./event-tail.ts";
import { eventPayload } from "./payload.ts";
import { PendingEvents } from "./pending-events.ts";
import {
  type EventReference,
  findEvent,
  insertEvent,
  readEnd,
  readSubject,
  readTail,
  type StoredEvent,
  type WorkerEventKey,
} from "./store.ts";

/** Whose event it is, and the key of one that a worker reported. */
export interface EventOwner {
  readonly accountId: string;
  readonly subject: string;
  readonly workerKey?: WorkerEventKey;
}

/** What to follow. */
export interface WatchOptions {
  readonly accountId: string;
  readonly subject: string;
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
  /** Reads what has settled after a place, in commit order. */
  tail(after: Cursor, limit: number): Promise<StoredEvent[]>;
  /** Follows one thing until the signal aborts. Listens from the moment it is called, not from the first read. */
  watch(options: WatchOptions): Promise<AsyncIterable<Event>>;
  /** Finds the type of an event by its identifier. */
  typeOf(event: EventReference): Promise<string | undefined>;
  start(): void;
  stop(): Promise<void>;
}

/** What the log stands on. */
export interface EventLogParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly log: Log;
}

const pageSize = 200;

/** Writes an event as the interface has it. */
function toMessage(event: StoredEvent): Event {
  return create(EventSchema, {
    id: event.id,
    type: event.type,
    createdAt: timestampFromDate(event.createdAt),
    data: event.data satisfies JsonObject,
  });
}

/** Makes the log. */
export function createEventLog({ db, bus, ids, log }: EventLogParts): EventLog {
  const tail = createEventTail(db, bus, log);

  async function startOf({ after, accountId, subject }: WatchOptions): Promise<Cursor> {
    const found = after === undefined ? undefined : await findEvent(db, { id: after, accountId, subject });
    return found?.cursor ?? readEnd(db);
  }

  /** Everything of a subject that has settled after a place. */
  async function* replay(subject: string, from: Cursor): AsyncGenerator<StoredEvent> {
    for (let cursor = from; ; ) {
      const page = await readSubject(db, subject, cursor, pageSize);
      yield* page;
      const last = page.at(-1);
      if (!last || page.length < pageSize) return;
      cursor = last.cursor;
    }
  }

  /** Reads the table first, then memory; whatever comes twice is told apart by its place. */
  async function* follow(
    subject: string,
    from: Cursor,
    pending: PendingEvents,
    signal: AbortSignal,
  ): AsyncGenerator<Event> {
    let cursor = from;
    try {
      while (!signal.aborted) {
        if (pending.mustReplay) {
          pending.mustReplay = false;
          for await (const event of replay(subject, cursor)) {
            cursor = event.cursor;
            yield toMessage(event);
          }
        }
        const event = pending.events.shift();
        if (event && isAfter(event.cursor, cursor)) {
          cursor = event.cursor;
          yield toMessage(event);
        } else if (!event && !pending.mustReplay) await pending.more(signal);
      }
    } finally {
      pending.close();
    }
  }

  return {
    async append(tx, { accountId, subject, workerKey }, schema, data) {
      const payload = eventPayload(schema, data);
      const id = ids.next("evt");
      tx.afterCommit(() => bus.publish("events", ""));
      return insertEvent(tx, { id, accountId, subject, payload, workerKey });
    },
    tail: (after, limit) => readTail(db, after, limit),
    async watch(options) {
      const pending = new PendingEvents((listener) => tail.listen(options.subject, listener));
      // A reader that never begins to read would never close it.
      options.signal.addEventListener("abort", () => pending.close(), { once: true });
      try {
        return follow(options.subject, await startOf(options), pending, options.signal);
      } catch (error) {
        pending.close();
        throw error;
      }
    },
    typeOf: async (event) => (await findEvent(db, event))?.type,
    start: () => tail.start(),
    stop: () => tail.stop(),
  };
}

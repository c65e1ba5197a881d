import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { eventPayload } from "../../src/platform/event-payload.ts";

/** Maximum number of events queued per reader. If the queue is full, the oldest event is dropped. */
const capacity = 200;

/** Creates an event for a session id. Events may occur in a warm browser, before the browser has a session. */
type EventMaker = (sessionId: string) => Event;

/** Fields of a browser event's payload, without the session. */
type EventFields<D extends DescMessage> = Omit<MessageInitShape<D>, "sessionId">;

/** Events of a session's browser for subscribed readers. Never stored. */
export class EventFeed {
  readonly #readers = new Set<BoundedQueue<EventMaker>>();
  readonly #listeners = new Map<string, (fields: never) => void>();
  readonly #onWatched: (isWatched: boolean) => void;
  #isClosed = false;

  /**
   * `onWatched` is called when the first reader subscribes and when the last reader leaves. Some events are too
   * expensive to produce without readers.
   */
  constructor(onWatched: (isWatched: boolean) => void) {
    this.#onWatched = onWatched;
  }

  /** Sets the only listener of an event type. The listener is called even if the feed has no readers. */
  on<D extends DescMessage>(payload: D, listener: (fields: EventFields<D>) => void): void {
    this.#listeners.set(payload.typeName, listener);
  }

  /** Sends an event to its listener and to all readers. */
  publish<D extends DescMessage>(payload: D, fields: EventFields<D>): void {
    // Cast: the listener was registered for the same payload type.
    this.#listeners.get(payload.typeName)?.(fields as never);
    if (this.#readers.size === 0) return;
    const createdAt = timestampNow();
    const make: EventMaker = (sessionId) =>
      create(EventSchema, { ...eventPayload(payload, fill(payload, sessionId, fields)), createdAt });
    for (const reader of this.#readers) reader.pushDroppingOldest(make);
  }

  /** Yields events from now on, until the feed is closed or the signal aborts. */
  async *read(sessionId: string, signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const makers = new BoundedQueue<EventMaker>({ items: capacity });
    const end = () => makers.end();
    if (this.#isClosed || signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    this.#readers.add(makers);
    if (this.#readers.size === 1) this.#onWatched(true);
    try {
      for await (const make of makers) yield make(sessionId);
    } finally {
      signal.removeEventListener("abort", end);
      this.#readers.delete(makers);
      if (this.#readers.size === 0 && !this.#isClosed) this.#onWatched(false);
    }
  }

  /** Ends the streams of all readers. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.end();
  }
}

/** Creates a payload with its session id. Cast: every browser event has the field, which `D` does not state. */
function fill<D extends DescMessage>(payload: D, sessionId: string, fields: EventFields<D>): MessageShape<D> {
  return create(payload, { ...fields, sessionId } as unknown as MessageInitShape<D>);
}

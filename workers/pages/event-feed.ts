import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { eventPayload } from "../../src/platform/event-payload.ts";

/** How many events a slow reader may fall behind before it loses the oldest. */
const capacity = 200;

/** Makes an event for the session that reads it: a warm browser has seen things before it was given to one. */
type EventMaker = (sessionId: string) => Event;

/** What is particular to a browser event, as its payload message has it. */
type Said<D extends DescMessage> = Omit<MessageInitShape<D>, "sessionId">;

/** What happens in a session's browser, for whoever watches; never stored. */
export class EventFeed {
  readonly #readers = new Set<BoundedQueue<EventMaker>>();
  readonly #onWatched: (isWatched: boolean) => void;
  #isClosed = false;

  /** `onWatched` hears when the first reader comes and the last one goes: some events cost too much to make for nobody. */
  constructor(onWatched: (isWatched: boolean) => void) {
    this.#onWatched = onWatched;
  }

  /** Tells all readers of something that has happened. */
  publish<D extends DescMessage>(payload: D, said: Said<D>): void {
    if (this.#readers.size === 0) return;
    const createdAt = timestampNow();
    const make: EventMaker = (sessionId) =>
      create(EventSchema, { ...eventPayload(payload, fill(payload, sessionId, said)), createdAt });
    for (const reader of this.#readers) reader.pushOver(make);
  }

  /** Gives what happens from now on, until the feed is closed or the signal aborts. */
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

  /** Lets every reader come to its end. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.end();
  }
}

/** The boundary where a payload gets its session: every browser event has the field, and only the caller knows its type. */
function fill<D extends DescMessage>(payload: D, sessionId: string, said: Said<D>): MessageShape<D> {
  return create(payload, { ...said, sessionId } as unknown as MessageInitShape<D>);
}

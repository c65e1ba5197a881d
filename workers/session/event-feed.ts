import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";

/** How many events a slow reader may fall behind before it loses the oldest. */
const CAPACITY = 200;

interface Reader {
  readonly pending: Event[];
  wake(): void;
}

/** What happens in a session's browser, for whoever watches; never stored. */
export class EventFeed {
  readonly #readers = new Set<Reader>();
  readonly #onWatched: (isWatched: boolean) => void;
  #isClosed = false;

  /** `onWatched` hears when the first reader comes and the last one goes: some events cost too much to make for nobody. */
  constructor(onWatched: (isWatched: boolean) => void) {
    this.#onWatched = onWatched;
  }

  /** Tells all readers of something that has happened. */
  publish(type: string, data: JsonObject): void {
    if (this.#readers.size === 0) return;
    const event = create(EventSchema, { type, data, createdAt: timestampNow() });
    for (const reader of this.#readers) {
      if (reader.pending.push(event) > CAPACITY) reader.pending.shift();
      reader.wake();
    }
  }

  /** Gives what happens from now on, until the feed is closed or the signal aborts. */
  async *read(signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    let next = Promise.withResolvers<void>();
    const reader: Reader = { pending: [], wake: () => next.resolve() };
    const onAbort = () => reader.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#onWatched(true);
    try {
      while (!signal.aborted) {
        for (let event = reader.pending.shift(); event; event = reader.pending.shift()) yield event;
        if (this.#isClosed) return;
        if (!signal.aborted) await next.promise;
        next = Promise.withResolvers<void>();
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#readers.delete(reader);
      if (this.#readers.size === 0 && !this.#isClosed) this.#onWatched(false);
    }
  }

  /** Lets every reader come to its end. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers) reader.wake();
  }
}

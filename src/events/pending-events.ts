import { BoundedQueue } from "../platform/bounded-queue.ts";
import type { StoredEvent } from "./store.ts";

/** A reader that is further behind than this reads from the table again instead of from memory. */
const pendingLimit = 1_000;

/** What the tail brings a reader. It ends when the reader is too far behind, or its signal aborts. */
export interface PendingEvents extends AsyncIterable<StoredEvent> {
  close(): void;
}

/** Begins to listen. */
export function listenForEvents(
  listen: (listener: (event: StoredEvent) => void) => () => void,
  signal: AbortSignal,
): PendingEvents {
  const events = new BoundedQueue<StoredEvent>({ items: pendingLimit });
  const unlisten = listen((event) => {
    if (events.push(event)) close();
  });
  function close(): void {
    unlisten();
    signal.removeEventListener("abort", close);
    events.end();
  }
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  return Object.assign(events, { close });
}

import { BoundedQueue } from "../platform/bounded-queue.ts";
import type { StoredEvent } from "./store.ts";

/** Maximum number of buffered events. A reader further behind returns to the table. */
const pendingLimit = 1_000;

/** Events buffered for a reader. Ends if the reader falls too far behind or its signal aborts. */
export interface PendingEvents extends AsyncIterable<StoredEvent> {
  close(): void;
}

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

import type { Connection } from "./connection.ts";
import type { InputEvent } from "./messages.ts";

/** How many events a message takes. */
const mostEvents = 64;

/** Bytes that may wait for the network before moves are held back, so that what is sent is not long past. */
const mostBacklog = 16_384;

/** What a person does, on its way to the service, in its order. */
export interface InputQueue {
  push(event: InputEvent): void;
  /** Forgets what was not sent. */
  clear(): void;
}

/** Whether an event goes on with the one before it: its newest state is all that counts. */
function merge(last: InputEvent | undefined, next: InputEvent): InputEvent | undefined {
  if (last?.kind === "pointer_move" && next.kind === "pointer_move") return next;
  if (last?.kind === "wheel" && next.kind === "wheel") return { ...next, dx: last.dx + next.dx, dy: last.dy + next.dy };
  const areMoves = last?.kind === "touch" && next.kind === "touch" && last.phase === "move" && next.phase === "move";
  return areMoves ? next : undefined;
}

/** Makes a queue. Moves are sent once a picture; all else at once, with the moves before it. */
export function createInputQueue({ send, backlog }: Pick<Connection, "send" | "backlog">): InputQueue {
  let events: InputEvent[] = [];
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      flush();
    });
  }

  function flush(): void {
    if (events.length === 0) return;
    if (backlog() > mostBacklog) {
      schedule();
      return;
    }
    const sent = events;
    events = [];
    for (let from = 0; from < sent.length; from += mostEvents)
      send({ input: { events: sent.slice(from, from + mostEvents) } });
  }

  return {
    push(event) {
      const merged = merge(events.at(-1), event);
      if (merged) events.splice(-1, 1, merged);
      else events.push(event);
      const isMove =
        event.kind === "pointer_move" || event.kind === "wheel" || (event.kind === "touch" && event.phase === "move");
      if (isMove) schedule();
      else flush();
    },
    clear() {
      events = [];
    },
  };
}

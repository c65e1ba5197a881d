import type { Connection } from "./connection.ts";
import type { InputEvent } from "./messages.ts";

/** Maximum number of events per message. */
const maxEvents = 64;

/**
 * While more bytes than this wait for the network, no events are sent. Moves are then merged in the queue, because they
 * would arrive outdated.
 */
const maxBacklog = 16_384;

/** Queue of input events for the service, in order. */
export interface InputQueue {
  push(event: InputEvent): void;
  clear(): void;
}

/**
 * Merges a move with the previous move into the newer one, and a wheel event with the previous one into their sum.
 * Returns undefined for other events.
 */
function merge(last: InputEvent | undefined, next: InputEvent): InputEvent | undefined {
  if (last?.kind === "pointer_move" && next.kind === "pointer_move") return next;
  if (last?.kind === "wheel" && next.kind === "wheel") return { ...next, dx: last.dx + next.dx, dy: last.dy + next.dy };
  const areMoves = last?.kind === "touch" && next.kind === "touch" && last.phase === "move" && next.phase === "move";
  return areMoves ? next : undefined;
}

/**
 * Creates a queue. Moves and wheel events are sent once per animation frame. Another event is sent at once, with all
 * events before it, unless the network is too slow.
 */
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
    if (backlog() > maxBacklog) {
      schedule();
      return;
    }
    const sent = events;
    events = [];
    for (let from = 0; from < sent.length; from += maxEvents)
      send({ input: { events: sent.slice(from, from + maxEvents) } });
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

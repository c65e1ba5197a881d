import type { Status } from "../gen/pilothouse/v1/status_pb.ts";
import type { Broadcast } from "../platform/broadcast.ts";
import { raceSignal } from "../platform/deadline.ts";
import { isSameStatus, type Snapshot, toStatusMessage } from "./snapshot.ts";

/** Current status in the memory of a gateway, and its followers. */
export interface Feed {
  /** Latest snapshot. Throws before the first snapshot. */
  readonly now: Snapshot;
  /** Publishes a snapshot. Followers are notified if the incidents or the health of a component have changed. */
  show(snapshot: Snapshot): void;
  /** Yields the current status, then every change, until the caller's signal aborts. Followers share the messages. */
  follow(caller: { readonly signal: AbortSignal }): Broadcast<Status>;
}

interface Step {
  readonly message: Status;
  readonly next: Promise<Step>;
}

/** Creates a feed without a snapshot. */
export function createFeed(): Feed {
  let shown: Snapshot | undefined;
  let step: Step | undefined;
  let advance: ((next: Step) => void) | undefined;
  const listeners = new Set<(message: Status) => void>();

  async function* iterate({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<Status> {
    let at = step;
    while (at) {
      yield at.message;
      at = await raceSignal(at.next, signal);
    }
  }

  return {
    get now() {
      if (!shown) throw new Error("the status has not been sampled yet");
      return shown;
    },
    show(snapshot) {
      const isChanged = shown === undefined || !isSameStatus(shown, snapshot);
      shown = snapshot;
      if (!isChanged) return;
      const { promise: next, resolve } = Promise.withResolvers<Step>();
      const message = toStatusMessage(snapshot);
      step = { message, next };
      advance?.(step);
      advance = resolve;
      for (const listener of listeners) listener(message);
    },
    follow: (caller) => ({
      [Symbol.asyncIterator]: () => iterate(caller),
      listen(listener) {
        if (step) listener(step.message);
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    }),
  };
}

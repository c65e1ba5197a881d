import type { StoredEvent } from "./store.ts";

/** A reader that is further behind than this reads from the table again instead of from memory. */
const pendingLimit = 1_000;

/** What the tail brought that a reader has not taken yet. */
export class PendingEvents {
  readonly events: StoredEvent[] = [];
  /** Memory lacks something: the table has it. */
  mustReplay = true;
  readonly #unlisten: () => void;
  #wake: (() => void) | undefined;

  constructor(listen: (listener: (event: StoredEvent) => void) => () => void) {
    this.#unlisten = listen((event) => this.#add(event));
  }

  /** Resolves when there is something new, or when the signal aborts. */
  async more(signal: AbortSignal): Promise<void> {
    if (this.events.length > 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#wake = wake;
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
  }

  close(): void {
    this.#unlisten();
  }

  #add(event: StoredEvent): void {
    if (this.events.push(event) > pendingLimit) {
      this.events.length = 0;
      this.mustReplay = true;
    }
    this.#wake?.();
  }
}

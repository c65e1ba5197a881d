import type { Progress } from "./progress.ts";

/** Lets others wait for something in a session's pages: whatever happens there is told here. */
export class Changes {
  #next: PromiseWithResolvers<void> | undefined;
  readonly #listeners = new Set<() => void>();

  /** Something has happened. */
  tell(): void {
    this.#next?.resolve();
    this.#next = undefined;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener whenever something happens, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Resolves with what `look` gives as soon as that is not undefined, or with undefined when the time is up: `atMostMs`,
   * or what the command has left. Rejects when the command is cut short, and with what `look` throws.
   */
  async until<Value>(
    look: () => Value | undefined,
    progress: Progress,
    atMostMs = Number.POSITIVE_INFINITY,
  ): Promise<Value | undefined> {
    let isLate = false;
    const onLate = () => {
      isLate = true;
      this.tell();
    };
    const timer = setTimeout(onLate, Math.min(progress.remaining(), atMostMs));
    try {
      for (;;) {
        const found = look();
        if (found !== undefined || isLate) return found;
        this.#next ??= Promise.withResolvers();
        await progress.race(this.#next.promise);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Gives a promise's outcome; undefined when `isMoot` holds before it, or the time is up as in `until`. */
  async before<Value>(
    promise: Promise<Value>,
    isMoot: () => boolean,
    progress: Progress,
    atMostMs?: number,
  ): Promise<Value | undefined> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
      this.tell();
    };
    promise.then(settle, settle);
    await this.until(() => isSettled || isMoot() || undefined, progress, atMostMs);
    return isSettled ? promise : undefined;
  }
}

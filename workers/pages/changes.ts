import type { Progress } from "./progress.ts";

/** Notifies waiters of any change in a session's pages. */
export class Changes {
  #next: PromiseWithResolvers<void> | undefined;
  readonly #listeners = new Set<() => void>();

  /** Notifies all waiters and listeners. */
  notify(): void {
    this.#next?.resolve();
    this.#next = undefined;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener on every change. Returns a function that removes the listener. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Resolves with the first value from `check` that is not undefined, or with undefined after `maxMs` or the
   * command's remaining time. Rejects if the command is aborted or `check` throws.
   */
  async until<Value>(
    check: () => Value | undefined,
    progress: Progress,
    maxMs = Number.POSITIVE_INFINITY,
  ): Promise<Value | undefined> {
    let isLate = false;
    const onLate = () => {
      isLate = true;
      this.notify();
    };
    const timer = setTimeout(onLate, Math.min(progress.remaining(), maxMs));
    try {
      for (;;) {
        const found = check();
        if (found !== undefined || isLate) return found;
        this.#next ??= Promise.withResolvers();
        await progress.race(this.#next.promise);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Settles like `promise`. Resolves with undefined if `isObsolete` returns true first, or after the time limit of
   * `until`.
   */
  async before<Value>(
    promise: Promise<Value>,
    isObsolete: () => boolean,
    progress: Progress,
    maxMs?: number,
  ): Promise<Value | undefined> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
      this.notify();
    };
    promise.then(settle, settle);
    await this.until(() => isSettled || isObsolete() || undefined, progress, maxMs);
    return isSettled ? promise : undefined;
  }
}

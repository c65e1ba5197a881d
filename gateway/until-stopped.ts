const STOPPED = Symbol("stopped");

/** The items of a source until it ends or the signal aborts, whichever is first. */
export async function* untilStopped<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  const { promise: stopped, resolve } = Promise.withResolvers<typeof STOPPED>();
  const stop = (): void => resolve(STOPPED);
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      const result = signal.aborted ? STOPPED : await Promise.race([iterator.next(), stopped]);
      if (result === STOPPED || result.done) {
        return;
      }
      yield result.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // Not awaited: a source that waits for its next item gives its answer only then.
    void iterator.return?.();
  }
}

/** The items of a source until it ends or the signal aborts, whichever is first. */
export async function* untilStopped<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let stopWaiting = (): void => undefined;
  const stop = (): void => stopWaiting();
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      // A promise for each item: what waits for one that lasts as long as the stream is kept as long as the stream.
      const result = await new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
        stopWaiting = () => resolve(undefined);
        iterator.next().then(resolve, reject);
      });
      if (!result || result.done) {
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

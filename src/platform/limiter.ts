/** Runs a function within a concurrency limit. */
export type Limiter = <T>(run: () => Promise<T>) => Promise<T>;

/** Creates a FIFO concurrency limiter (semaphore). */
export function createLimiter(atOnce: number): Limiter {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async (run) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      // The slot passes directly to the next waiting call.
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

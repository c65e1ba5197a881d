/** Resolves after the time, or when the signal aborts. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Polls a condition until it is true. Returns false on timeout. `timeout` and `every` are in milliseconds. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  { timeout, every }: { timeout: number; every: number },
): Promise<boolean> {
  const deadline = performance.now() + timeout;
  while (!(await condition())) {
    if (performance.now() >= deadline) return false;
    await sleep(every);
  }
  return true;
}

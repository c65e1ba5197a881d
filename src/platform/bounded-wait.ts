/** Waits; resolves early, without failing, when the signal aborts. */
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

/** Asks again every few milliseconds until the answer is true; false when the time is up first. */
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

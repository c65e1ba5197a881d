import type { Log } from "./log.ts";

/** A component of a process that can be started and stopped. */
export interface Part {
  /** Starts the component. The signal aborts if the start is cancelled. A component that is waiting then rejects. */
  start?(signal?: AbortSignal): void | Promise<void>;
  stop?(): void | Promise<void>;
}

export interface Lifetime {
  /** Starts the parts. Rejects if the signal aborts or `stop` is called before all parts have started. */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts parts in order, and stops them in reverse order, including a part that failed to start. Repeated calls return
 * the promise of the first call.
 */
export function createLifetime(parts: readonly Part[], log: Log): Lifetime {
  const begun: Part[] = [];
  const cancelling = new AbortController();
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function startAll(signal: AbortSignal): Promise<void> {
    for (const part of parts) {
      signal.throwIfAborted();
      begun.push(part);
      await part.start?.(signal);
    }
  }

  async function stopAll(): Promise<void> {
    cancelling.abort(new Error("the app was stopped during its start"));
    await starting?.catch(() => undefined);
    for (const part of begun.splice(0).reverse()) {
      try {
        await part.stop?.();
      } catch (error) {
        log.error({ err: error }, "failed to stop a part");
      }
    }
  }

  return {
    start: (signal) => {
      const { signal: cancelled } = cancelling;
      starting ??= startAll(signal ? AbortSignal.any([signal, cancelled]) : cancelled);
      return starting;
    },
    stop: () => {
      stopping ??= stopAll();
      return stopping;
    },
  };
}

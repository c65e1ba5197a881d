import type { Log } from "./log.ts";

/** A part with a lifetime. */
export interface Part {
  /** A part that waits for others rejects when the signal aborts, because the start was cancelled. */
  start?(signal?: AbortSignal): void | Promise<void>;
  stop?(): void | Promise<void>;
}

export interface Lifetime {
  /** Starts the parts until the signal aborts or `stop` is called. */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Starts parts in order, and stops started parts in reverse order. Repeated calls have no effect. */
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

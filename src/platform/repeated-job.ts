import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** Background job that a process repeats at an interval. */
export interface RepeatedJob {
  start(): void;
  /** Runs now, or once more after the current run. Does nothing after `stop`. Resolves when that run has ended. */
  runNow(): Promise<void>;
  /** Resolves when the current run has ended. */
  stop(): Promise<void>;
}

/** Function and interval of a repeated job. */
export interface RepeatedTask {
  readonly run: () => Promise<void>;
  /** Milliseconds between starts. */
  readonly every: number;
  /** Log message on failure. The next run retries. */
  readonly failureMessage: string;
}

/** Clock and log of repeated jobs. */
export interface RepeatedJobParts {
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates a job. Runs never overlap, so that they do not pile up if PostgreSQL is slow. */
export function createRepeatedJob(
  { run, every, failureMessage }: RepeatedTask,
  { clock, log }: RepeatedJobParts,
): RepeatedJob {
  let end: (() => void) | undefined;
  let isStopped = false;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function runOnce(): Promise<void> {
    try {
      await run();
    } catch (error) {
      log.warn({ err: error }, failureMessage);
    }
  }

  async function tick(): Promise<void> {
    if (!isStopped)
      running ??= runOnce().finally(() => {
        running = undefined;
      });
    await running;
  }

  async function runAfter(earlier: Promise<void>): Promise<void> {
    await earlier;
    next = undefined;
    await tick();
  }

  return {
    start() {
      isStopped = false;
      end ??= clock.every(every, tick);
    },
    async runNow() {
      if (!running) return await tick();
      next ??= runAfter(running);
      await next;
    },
    async stop() {
      isStopped = true;
      end?.();
      end = undefined;
      await running;
    },
  };
}

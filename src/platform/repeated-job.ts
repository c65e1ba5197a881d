import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** Background work of a gateway: a look at what has become due. */
export interface RepeatedJob {
  start(): void;
  /** Runs now, or once more when the run that is under way has ended; not after a stop. Resolves when that run has ended. */
  runNow(): Promise<void>;
  /** Resolves when the work that was under way has ended. */
  stop(): Promise<void>;
}

/** What to do how often. */
export interface RepeatedWork {
  readonly run: () => Promise<void>;
  /** Milliseconds between two beginnings. */
  readonly every: number;
  /** What is logged when it fails; the next turn tries again. */
  readonly complaint: string;
}

/** What a job repeats and complains by. */
export interface RepeatedJobParts {
  readonly clock: Clock;
  readonly log: Log;
}

/** Makes a job. One run at a time: work that PostgreSQL holds up is not piled onto. */
export function createRepeatedJob(
  { run, every, complaint }: RepeatedWork,
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
      log.warn({ err: error }, complaint);
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

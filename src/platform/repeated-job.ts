import type { Log } from "./log.ts";

/** Background work of a gateway: a look at what has become due. */
export interface RepeatedJob {
  start(): void;
  /** Runs now, or once more when the run that is under way has ended. */
  hurry(): void;
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

/** Makes a job. One run at a time: work that PostgreSQL holds up is not piled onto. */
export function createRepeatedJob({ run, every, complaint }: RepeatedWork, log: Log): RepeatedJob {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isHurried = false;

  function tick(): void {
    running ??= run()
      .catch((error: unknown) => log.warn({ err: error }, complaint))
      .finally(() => {
        running = undefined;
        if (isHurried && timer) tick();
        isHurried = false;
      });
  }

  return {
    start() {
      timer ??= setInterval(tick, every);
    },
    hurry() {
      isHurried = running !== undefined;
      if (timer) tick();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}

import type { Clock } from "../platform/clock.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { HeldLane } from "./held-lanes.ts";
import { readDueJobs, type StoredJob } from "./store.ts";

/** How many jobs are read ahead. */
const batch = 50;

/** The jobs of a lane that are due. */
export interface LaneQueue {
  /** Takes the first that may begin beside those that run. */
  next(running: () => readonly StoredJob[]): Promise<StoredJob | undefined>;
}

/** Which jobs may begin beside those that run. */
interface Rules {
  /** Whether those that have failed before may. */
  readonly retries: boolean;
  /** Order keys whose next job may not. */
  readonly busy: readonly string[];
}

export interface LaneQueueParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly width: number;
}

/** Makes the queue of a lane. */
export function createLaneQueue(held: HeldLane, { db, clock, width }: LaneQueueParts): LaneQueue {
  const waiting: StoredJob[] = held.first ? [held.first] : [];
  /** What must change before there can be more than the last read has found: news, or what might not begin then. */
  let exhausted: (Rules & { readonly news: Promise<void> }) | undefined;

  /** What may begin: a job that has failed leaves a place for news, and jobs with the same order key wait for each other. */
  function rulesBeside(running: readonly StoredJob[]): Rules {
    const busy = running.flatMap(({ order_key: key }) => (key === null ? [] : [key]));
    const retries = running.filter(({ attempts }) => attempts > 0).length < Math.max(1, width - 1);
    return { retries, busy };
  }

  async function read(running: readonly StoredJob[]): Promise<void> {
    const news = held.news();
    const known = [...running, ...waiting].map(({ id }) => id);
    const rules = rulesBeside(running);
    const found = await readDueJobs(db, held, { ...rules, known, now: new Date(clock.now()), limit: batch });
    waiting.push(...found);
    exhausted = found.length < batch ? { ...rules, news } : undefined;
  }

  function take(running: readonly StoredJob[]): StoredJob | undefined {
    const { retries, busy } = rulesBeside(running);
    const index = waiting.findIndex(({ attempts, order_key: key }) =>
      attempts > 0 ? retries : key === null || !busy.includes(key),
    );
    return index < 0 ? undefined : waiting.splice(index, 1)[0];
  }

  function isExhausted(running: readonly StoredJob[]): boolean {
    if (exhausted?.news !== held.news()) return false;
    const { retries, busy } = rulesBeside(running);
    return exhausted.retries === retries && exhausted.busy.every((key) => busy.includes(key));
  }

  return {
    async next(running) {
      for (;;) {
        const job = take(running());
        if (job || isExhausted(running())) return job;
        // Some of those that run may end meanwhile.
        await read(running());
      }
    },
  };
}

import type { PlatformParts } from "../platform/platform-parts.ts";
import type { HeldQueue } from "./held-queues.ts";
import { readDueJobs, type StoredJob } from "./store.ts";

/** Maximum number of jobs per read. */
const batch = 50;

/** Buffer of the due jobs of a queue, filled in batches from PostgreSQL. */
export interface DueJobs {
  /** Removes and returns the first job that may run concurrently with the running jobs, if there is one. */
  next(running: () => readonly StoredJob[]): Promise<StoredJob | undefined>;
}

/** Conditions for starting a job next to the running jobs. */
interface Rules {
  /** Whether retries may start. */
  readonly retries: boolean;
  /** Order keys with a running job. */
  readonly busy: readonly string[];
}

export interface DueJobsParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly width: number;
}

export function createDueJobs(held: HeldQueue, { db, clock, width }: DueJobsParts): DueJobs {
  const waiting: StoredJob[] = held.first ? [held.first] : [];
  /**
   * Set if the last read found all startable jobs. Another read is useless until a job is added or a rule is relaxed.
   */
  let exhausted: (Rules & { readonly jobAdded: Promise<void> }) | undefined;

  /**
   * Returns the current rules. If `width` is above 1, retries leave room for one first attempt. First attempts with the
   * same order key run one after the other.
   */
  function rulesBeside(running: readonly StoredJob[]): Rules {
    const busy = running.flatMap(({ order_key: key }) => (key === null ? [] : [key]));
    const retries = running.filter(({ attempts }) => attempts > 0).length < Math.max(1, width - 1);
    return { retries, busy };
  }

  async function read(running: readonly StoredJob[]): Promise<void> {
    const jobAdded = held.jobAdded();
    const known = [...running, ...waiting].map(({ id }) => id);
    const rules = rulesBeside(running);
    const found = await readDueJobs(db, held, { ...rules, known, now: new Date(clock.now()), limit: batch });
    waiting.push(...found);
    exhausted = found.length < batch ? { ...rules, jobAdded } : undefined;
  }

  function take(running: readonly StoredJob[]): StoredJob | undefined {
    const { retries, busy } = rulesBeside(running);
    const index = waiting.findIndex(({ attempts, order_key: key }) =>
      attempts > 0 ? retries : key === null || !busy.includes(key),
    );
    return index < 0 ? undefined : waiting.splice(index, 1)[0];
  }

  function isExhausted(running: readonly StoredJob[]): boolean {
    if (exhausted?.jobAdded !== held.jobAdded()) return false;
    const { retries, busy } = rulesBeside(running);
    return exhausted.retries === retries && exhausted.busy.every((key) => busy.includes(key));
  }

  return {
    async next(running) {
      for (;;) {
        const job = take(running());
        if (job || isExhausted(running())) return job;
        // The loop rereads `running`, because jobs may end during the read.
        await read(running());
      }
    },
  };
}

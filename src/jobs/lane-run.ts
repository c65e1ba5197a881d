import type { WorkKind } from "../kernel/work-kind.ts";
import type { Clock } from "../platform/clock.ts";
import type { Limiter } from "../platform/limiter.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import { attempt, type Outcome } from "./attempt.ts";
import type { HeldLane } from "./held-lanes.ts";
import { createLaneQueue } from "./lane-queue.ts";
import type { Place } from "./places.ts";
import { failingFrom, type StoredJob } from "./store.ts";

/** Milliseconds after which a busy queue releases its slot. A queue in a slow slot keeps it. */
const turnMs = 10_000;

/** Milliseconds after which an attempt is slow. Its queue moves to a slow slot and stops delaying quick queues. */
const slowAfter = 150;

export interface LaneRunParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Limits settlement writes of slow and failing queues, since many of their attempts end together. */
  readonly turns: Limiter;
  /** Aborts when no further job may start. */
  readonly closing: AbortSignal;
  /** Aborts when running jobs must end. */
  readonly stopping: AbortSignal;
  count(kind: string, outcome: Outcome): void;
  /** Records the milliseconds between a job's due time and its first attempt. */
  lag(kind: string, milliseconds: number): void;
}

/** A claimed queue with its slot and kind. */
interface PlacedLane {
  readonly held: HeldLane;
  readonly place: Place;
  readonly work: WorkKind<unknown>;
}

/**
 * Runs the jobs of a queue until none is due, its time is up, no slot is free, or its lease expires. Rejects if jobs
 * cannot be read.
 */
export async function runLane(lane: PlacedLane, parts: LaneRunParts): Promise<void> {
  const { held, place, work } = lane;
  const lost = AbortSignal.any([held.lease, parts.stopping]);
  const turnEnds = performance.now() + turnMs;
  const queue = createLaneQueue(held, { ...parts, width: work.width });
  const running = new Map<StoredJob, Promise<void>>();
  let { failures } = held;

  function mayBegin(): boolean {
    if (parts.closing.aborted || held.lease.aborted || running.size >= work.width) return false;
    if (failures >= failingFrom && !place.move("failing")) return false;
    return place.kind === "slow" || performance.now() < turnEnds;
  }

  async function run(job: StoredJob): Promise<void> {
    const outcome = await runJob(lane, job, { ...parts, lost }).finally(() => running.delete(job));
    failures = outcome === "done" ? 0 : failures + 1;
  }

  async function beginDue(): Promise<void> {
    while (mayBegin()) {
      const job = await queue.next(() => [...running.keys()]);
      if (!job) return;
      running.set(job, run(job));
    }
  }

  try {
    for (;;) {
      const news = held.news();
      await beginDue();
      if (running.size === 0) return;
      await Promise.race([...running.values(), ...(mayBegin() ? [news] : [])]);
    }
  } finally {
    await Promise.allSettled(running.values());
  }
}

interface JobRunParts extends LaneRunParts {
  /** Aborts when this gateway may no longer settle the job. */
  readonly lost: AbortSignal;
}

async function runJob({ held, place, work }: PlacedLane, job: StoredJob, parts: JobRunParts): Promise<Outcome> {
  const timer = setTimeout(() => place.kind === "sound" && place.move("slow"), slowAfter);
  if (job.attempts === 0) parts.lag(work.kind, parts.clock.now() - job.due_at.getTime());
  const inTurn: Limiter = (write) => (place.kind === "sound" ? write() : parts.turns(write));
  const outcome = await attempt(held, job, work, { ...parts, inTurn }).finally(() => clearTimeout(timer));
  parts.count(work.kind, outcome);
  return outcome;
}

import type { WorkKind } from "../kernel/work-kind.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Turns } from "../platform/turns.ts";
import { attempt, type Outcome } from "./attempt.ts";
import type { HeldLane } from "./held-lanes.ts";
import { createLaneQueue } from "./lane-queue.ts";
import type { Place } from "./places.ts";
import { failingFrom, type StoredJob } from "./store.ts";

/** Milliseconds after which a lane with much to do lets others have its place; slow ones keep theirs from nobody. */
const turnMs = 10_000;

/** Milliseconds after which an attempt is slow. Its lane takes a place among such, so that it holds up no quick one. */
const slowAfter = 150;

export interface LaneRunParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** In which lanes that are slow or fail write what became of their jobs: many end together, as they began. */
  readonly turns: Turns;
  /** Aborts when no further job is to begin. */
  readonly closing: AbortSignal;
  /** Aborts when those that run are to end. */
  readonly stopping: AbortSignal;
  count(kind: string, outcome: Outcome): void;
  /** Takes note of how many milliseconds after its time a job has its first attempt. */
  lag(kind: string, milliseconds: number): void;
}

/** A lane, where it has its place, and whose work it is. */
interface PlacedLane {
  readonly held: HeldLane;
  readonly place: Place;
  readonly work: WorkKind<unknown>;
}

/**
 * Runs the jobs of a lane until none is due, its turn is over, there is no place for it, or its lease has lapsed. Throws when
 * jobs cannot be read.
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
  /** Aborts when what comes of the job is no longer ours to say. */
  readonly lost: AbortSignal;
}

async function runJob({ held, place, work }: PlacedLane, job: StoredJob, parts: JobRunParts): Promise<Outcome> {
  const timer = setTimeout(() => place.kind === "sound" && place.move("slow"), slowAfter);
  if (job.attempts === 0) parts.lag(work.kind, parts.clock.now() - job.due_at.getTime());
  const inTurn: Turns = (write) => (place.kind === "sound" ? write() : parts.turns(write));
  const outcome = await attempt(held, job, work, { ...parts, inTurn }).finally(() => clearTimeout(timer));
  parts.count(work.kind, outcome);
  return outcome;
}

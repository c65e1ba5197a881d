import { sleep } from "../platform/bounded-wait.ts";
import type { Clock } from "../platform/clock.ts";
import { Deadline, raceSignal } from "../platform/deadline.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { HeldLane } from "./held-lanes.ts";
import { deleteDoneJob, type FailedAttempt, failingFrom, noteFailure, readDueJobs, type StoredJob } from "./store.ts";
import { Hopeless, type WorkKind } from "./work-kind.ts";

/** Milliseconds after which a lane with much to do lets others have its place. */
const turnMs = 10_000;

/** How many jobs are read ahead. */
const batch = 50;

const longestComplaint = 500;

/** Milliseconds after which what became of a job is written again, while PostgreSQL is away. */
const settleEvery = 200;

/** What became of an attempt; `lost` when this gateway was told to stop, or the lane was no longer its own. */
export type Outcome = "done" | "failed" | "dead" | "lost";

export interface LaneRunParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when no further job is to begin. */
  readonly closing: AbortSignal;
  /** Aborts when those that run are to end. */
  readonly stopping: AbortSignal;
  count(kind: string, outcome: Outcome): void;
}

/**
 * Runs the jobs of a lane until none is due, its turn is over, it has begun to fail, or its lease has lapsed. Throws when
 * jobs cannot be read.
 */
export async function runLane(held: HeldLane, work: WorkKind<unknown>, parts: LaneRunParts): Promise<void> {
  const { db, clock, closing, stopping } = parts;
  const lost = AbortSignal.any([held.lease, stopping]);
  const turnEnds = performance.now() + turnMs;
  const running = new Map<string, Promise<void>>();
  let waiting: StoredJob[] = [];
  let { failures } = held;
  let trouble: unknown;

  function mayBegin(): boolean {
    const isTurn = performance.now() < turnEnds && (failures < failingFrom || held.failures >= failingFrom);
    return isTurn && !trouble && !closing.aborted && !held.lease.aborted && running.size < work.width;
  }

  async function runJob(job: StoredJob): Promise<void> {
    const outcome = await attempt(held, job, work, { ...parts, lost });
    parts.count(work.kind, outcome);
    failures = outcome === "done" ? 0 : failures + 1;
  }

  async function beginDue(): Promise<void> {
    if (mayBegin() && waiting.length === 0)
      waiting = await readDueJobs(db, held, { now: new Date(clock.now()), running: [...running.keys()], limit: batch });
    while (mayBegin()) {
      const job = waiting.shift();
      if (!job) return;
      const run = runJob(job).finally(() => running.delete(job.id));
      running.set(job.id, run);
    }
  }

  for (;;) {
    const news = held.news();
    await beginDue().catch((error: unknown) => {
      trouble = error;
    });
    if (running.size === 0) break;
    await Promise.race([...running.values(), ...(mayBegin() ? [news] : [])]);
  }
  if (trouble) throw trouble;
}

interface AttemptParts extends LaneRunParts {
  /** Aborts when what comes of the attempt is no longer ours to say. */
  readonly lost: AbortSignal;
}

async function attempt(
  held: HeldLane,
  { id, data, attempts }: StoredJob,
  work: WorkKind<unknown>,
  { db, clock, log, lost }: AttemptParts,
): Promise<Outcome> {
  using deadline = new Deadline(work.timeout, () => new Error(`took longer than ${work.timeout} ms`), [lost]);
  const { signal } = deadline;
  const job = { id, lane: held.lane, data, attempt: attempts + 1 };
  try {
    await raceSignal(work.run(job, signal), signal);
  } catch (error) {
    if (lost.aborted) return "lost";
    const failed = failureOf(error, work.schedule[attempts], clock.now());
    log.info({ err: error, kind: work.kind, job: id, attempt: job.attempt }, "an attempt at work has failed");
    await settle(() => noteFailure(db, held, id, failed), held.lease);
    return failed.deadAt ? "dead" : "failed";
  }
  await settle(() => deleteDoneJob(db, held, id), held.lease);
  return "done";
}

function failureOf(error: unknown, wait: number | undefined, now: number): FailedAttempt {
  const isHopeless = error instanceof Hopeless;
  const complaint = (error instanceof Error ? error.message : String(error)).slice(0, longestComplaint);
  const next = isHopeless || wait === undefined ? { deadAt: new Date(now) } : { dueAt: new Date(now + wait) };
  return { complaint, countsForLane: !isHopeless, ...next };
}

/** Writes what became of a job, again and again while PostgreSQL is away: else it would be run once more. */
async function settle(write: () => Promise<void>, lease: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (lease.aborted) throw error;
      await sleep(settleEvery, lease);
    }
  }
}

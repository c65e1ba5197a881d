import { Hopeless, type Settlement, type WorkKind } from "../kernel/work-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import type { Clock } from "../platform/clock.ts";
import { Deadline, raceSignal } from "../platform/deadline.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Queryable } from "../platform/postgres/database.ts";
import type { Turns } from "../platform/turns.ts";
import type { HeldLane } from "./held-lanes.ts";
import { deleteDoneJob, type FailedAttempt, noteFailure, type StoredJob } from "./store.ts";

const longestComplaint = 500;

/** Milliseconds after which what became of a job is written again, while PostgreSQL is away. */
const settleEvery = 200;

/** What became of an attempt; `lost` when this gateway was told to stop, or the lane was no longer its own. */
export type Outcome = "done" | "failed" | "dead" | "lost";

interface AttemptParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when what comes of the attempt is no longer ours to say. */
  readonly lost: AbortSignal;
  /** In which what became of it is written. */
  readonly inTurn: Turns;
}

/** What came of running it. */
interface End {
  readonly failure?: unknown;
  /** The work has not returned the failure, but thrown it. */
  readonly isThrown?: true;
  readonly write?: Settlement["write"];
}

/** Tries to do a job, and writes what became of it. */
export async function attempt(
  held: HeldLane,
  { id, data, attempts }: StoredJob,
  work: WorkKind<unknown>,
  { db, clock, log, lost, inTurn }: AttemptParts,
): Promise<Outcome> {
  const job = { id, lane: held.lane, data, attempt: attempts + 1 };
  const settleInTurn = (verdict: Verdict) => inTurn(() => settle(db, held, verdict));
  const { failure, isThrown, write } = await run(work, job, lost);
  if (failure === undefined) {
    await settleInTurn({ write, note: (on) => deleteDoneJob(on, held, id) });
    return "done";
  }
  if (lost.aborted) return "lost";
  const failed = failureOf(failure, work.schedule[attempts], clock.now());
  // A failure that the work foresees is another's fault, such as a webhook's endpoint: its stack would say nothing.
  const reason = isThrown && !(failure instanceof Hopeless) ? { err: failure } : { reason: failed.complaint };
  log.info({ ...reason, kind: work.kind, job: id, attempt: job.attempt }, "an attempt at work has failed");
  await settleInTurn({ write, next: failed.dueAt, note: (on) => noteFailure(on, held, id, failed) });
  return failed.deadAt ? "dead" : "failed";
}

async function run(work: WorkKind<unknown>, job: Parameters<typeof work.run>[0], lost: AbortSignal): Promise<End> {
  using deadline = new Deadline(work.timeout, () => new Error(`took longer than ${work.timeout} ms`), [lost]);
  const { signal } = deadline;
  const end = async (): Promise<End> => (await work.run(job, signal)) ?? {};
  try {
    return await raceSignal(end(), signal);
  } catch (error) {
    return { failure: error ?? new Error("failed with nothing"), isThrown: true };
  }
}

function failureOf(error: unknown, wait: number | undefined, now: number): FailedAttempt {
  const isHopeless = error instanceof Hopeless;
  const complaint = (error instanceof Error ? error.message : String(error)).slice(0, longestComplaint);
  const next = isHopeless || wait === undefined ? { deadAt: new Date(now) } : { dueAt: new Date(now + wait) };
  return { complaint, countsForLane: !isHopeless, ...next };
}

class NotOurs extends Error {}

/** What is to be written: beside the job, and into it. Nothing is when the job is not ours any more. */
interface Verdict {
  readonly note: (on: Queryable) => Promise<boolean>;
  readonly write?: Settlement["write"] | undefined;
  readonly next?: Date | undefined;
}

/** Writes what became of a job, again and again while PostgreSQL is away: else it would be run once more. */
async function settle(db: Database, { lease }: HeldLane, { note, write, next }: Verdict): Promise<void> {
  const writeBoth = (writeBeside: NonNullable<typeof write>) =>
    db.transaction(async (tx) => {
      writeBeside(tx, next);
      if (!(await note(tx))) throw new NotOurs("the job is not ours any more");
    });
  for (;;) {
    try {
      await (write ? writeBoth(write) : note(db));
      return;
    } catch (error) {
      if (error instanceof NotOurs) return;
      if (lease.aborted) throw error;
      await sleep(settleEvery, lease);
    }
  }
}

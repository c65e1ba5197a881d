import { type JobKind, PermanentFailure, type Settlement } from "../kernel/job-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import { Deadline, raceSignal } from "../platform/deadline.ts";
import type { Limiter } from "../platform/limiter.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Database, Queryable } from "../platform/postgres/database.ts";
import { isContention, isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import type { HeldQueue } from "./held-queues.ts";
import { deleteDoneJob, type FailedAttempt, recordFailure, type StoredJob } from "./store.ts";

const maxMessageLength = 500;

/** Milliseconds between attempts to store an outcome. */
const settleEvery = 200;

/**
 * Outcome of an attempt. `dead`: the job became a dead letter. `lost`: the gateway stopped or lost the queue's lease,
 * so the failure was not recorded.
 */
export type JobOutcome = "done" | "failed" | "dead" | "lost";

interface AttemptParts extends Pick<PlatformParts, "db" | "clock" | "log"> {
  /** Aborts when the gateway stops or loses the queue's lease. */
  readonly lost: AbortSignal;
  /** Limits concurrent settlement writes. */
  readonly limitWrites: Limiter;
}

interface End {
  readonly failure?: unknown;
  /** Set if the failure was thrown, not returned. */
  readonly isThrown?: true;
  readonly write?: Settlement["write"];
}

/** Runs a job once and stores the outcome. */
export async function attempt(
  held: HeldQueue,
  { id, data, attempts }: StoredJob,
  jobKind: JobKind<unknown>,
  { db, clock, log, lost, limitWrites }: AttemptParts,
): Promise<JobOutcome> {
  const job = { id, queue: held.queue, data, attempt: attempts + 1 };
  const failedBy = (error: unknown, { isThrown, write }: Omit<End, "failure">): Settling => {
    const failed = failureOf(error, jobKind.schedule[attempts], clock.now());
    // A returned failure has an external cause (such as a webhook endpoint), so its stack is not logged.
    const reason = isThrown && !(error instanceof PermanentFailure) ? { err: error } : { reason: failed.message };
    log.info({ ...reason, kind: jobKind.kind, job_id: id, attempt: job.attempt }, "failed to run job");
    const note = (on: Queryable) => recordFailure(on, held, id, failed);
    return { outcome: failed.deadAt ? "dead" : "failed", note, write, next: failed.dueAt };
  };
  const { failure, ...end } = await run(jobKind, job, lost);
  if (failure !== undefined && lost.aborted) return "lost";
  const settling: Settling =
    failure === undefined
      ? { outcome: "done", note: (on) => deleteDoneJob(on, held, id), write: end.write }
      : failedBy(failure, end);
  return limitWrites(() => settle(db, held, settling, (error) => failedBy(error, { isThrown: true })));
}

async function run(jobKind: JobKind<unknown>, job: Parameters<typeof jobKind.run>[0], lost: AbortSignal): Promise<End> {
  using deadline = new Deadline(jobKind.timeout, () => new Error(`took longer than ${jobKind.timeout} ms`), [lost]);
  const { signal } = deadline;
  const end = async (): Promise<End> => (await jobKind.run(job, signal)) ?? {};
  try {
    return await raceSignal(end(), signal);
  } catch (error) {
    return { failure: error ?? new Error("the job was rejected without an error"), isThrown: true };
  }
}

function failureOf(error: unknown, wait: number | undefined, now: number): FailedAttempt {
  const isPermanent = error instanceof PermanentFailure;
  const message = (error instanceof Error ? error.message : String(error)).slice(0, maxMessageLength);
  const next = isPermanent || wait === undefined ? { deadAt: new Date(now) } : { dueAt: new Date(now + wait) };
  return { message, countsForQueue: !isPermanent, ...next };
}

class ClaimLost extends Error {}

/** The job's own update (`note`), and writes of the same transaction. Both are rolled back if `note` returns false. */
interface Settling {
  readonly outcome: JobOutcome;
  readonly note: (on: Queryable) => Promise<boolean>;
  readonly write?: Settlement["write"] | undefined;
  readonly next?: Date | undefined;
}

/**
 * Stores the outcome of an attempt and returns it. Retries failed writes until the lease is lost, because without an
 * outcome the job would run again. An outcome that can never be stored is replaced by the failure of `failedBy`.
 */
async function settle(
  db: Database,
  { lease }: HeldQueue,
  first: Settling,
  failedBy: (error: unknown) => Settling,
): Promise<JobOutcome> {
  for (let settling = first; ; ) {
    try {
      await store(db, settling);
      return settling.outcome;
    } catch (error) {
      if (error instanceof ClaimLost) return settling.outcome;
      if (lease.aborted) throw error;
      if (!isDatabaseUnavailable(error) && !isContention(error)) settling = failedBy(error);
      await sleep(settleEvery, lease);
    }
  }
}

async function store(db: Database, { note, write, next }: Settling): Promise<void> {
  if (!write) return void (await note(db));
  await db.transaction(async (tx) => {
    write(tx, next);
    if (!(await note(tx))) throw new ClaimLost("the job no longer belongs to this claim");
  });
}

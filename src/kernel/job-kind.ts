import type { Tx } from "../platform/postgres/database.ts";

/** A job as passed to its handler. */
export interface Job<Data> {
  /** Same for every attempt. */
  readonly id: string;
  readonly queue: string;
  readonly data: Data;
  /** Starts at 1. */
  readonly attempt: number;
}

/**
 * A kind of job. A job runs once, and again only if it fails or its gateway dies. Gateways claim queues. Jobs of a
 * queue start in commit order, except that failed jobs do not block the others. Among jobs with the same order key, a
 * first attempt waits for the previous job's first attempt to end.
 */
export interface JobKind<Data> {
  /** Lower case. Used in the database, in logs and in metrics. */
  readonly kind: string;
  /** Maximum concurrent jobs of a queue. */
  readonly width: number;
  /** Maximum concurrent healthy queues per gateway. Default: see queue-claims.ts. */
  readonly queues?: number;
  /** Delays in milliseconds after each failure. A failure after the last delay makes the job a dead letter. */
  readonly schedule: readonly number[];
  /** Maximum duration of an attempt in milliseconds. */
  readonly timeout: number;
  /**
   * Runs a job until it is done or the signal aborts. Throws an error if the attempt failed, or a `PermanentFailure` if
   * every further attempt would fail too. May return writes to commit with the outcome.
   */
  run(job: Job<Data>, signal: AbortSignal): Promise<void> | Promise<Settlement>;
}

/** Outcome of an attempt that writes more than the job's own row. */
export interface Settlement {
  /** Set if the attempt failed. */
  readonly failure?: Error;
  /**
   * Adds writes to the transaction that settles the job, so that both commit together. `next` is the time of the next
   * attempt, if there is one. Sends its statements without waiting for results. If a write fails for a reason other
   * than contention or an unreachable PostgreSQL, the attempt fails without the writes.
   */
  write(tx: Tx, next: Date | undefined): void;
}

export function defineJob<Data>(jobKind: JobKind<Data>): JobKind<Data> {
  return jobKind;
}

/** Thrown if every further attempt would fail. The job becomes a dead letter. Its queue does not count as failing. */
export class PermanentFailure extends Error {
  override readonly name = "PermanentFailure";
}

import type { Tx } from "../platform/postgres/database.ts";

/** A piece of work, as it is run. */
export interface Job<Data> {
  /** The same for every attempt. */
  readonly id: string;
  readonly lane: string;
  readonly data: Data;
  /** Counts from 1. */
  readonly attempt: number;
}

/**
 * One kind of work. A job is run once, and again only when it fails or when its gateway dies over it. What is claimed by a
 * gateway is a lane: jobs of one lane begin in the order in which they were committed, except that one which has failed
 * lets the others pass. Of those with the same order key each has its first attempt when that of the one before has ended.
 */
export interface WorkKind<Data> {
  /** In lower case; it names the work in the database, in logs and in metrics. */
  readonly kind: string;
  /** How many jobs of a lane run at once. */
  readonly width: number;
  /** How many lanes a gateway runs at once, where it is to be few. */
  readonly lanes?: number;
  /** Milliseconds to wait after each failure; after the last of them a job that fails is a dead letter. */
  readonly schedule: readonly number[];
  /** Milliseconds that an attempt may take. */
  readonly timeout: number;
  /**
   * Does the work. Throws when it has failed, `Hopeless` when it always will, or gives what is to be written about it. The
   * signal aborts when it is to stop.
   */
  run(job: Job<Data>, signal: AbortSignal): Promise<void> | Promise<Settlement>;
}

/** What came of an attempt, where more than the job is to know it. */
export interface Settlement {
  /** Why it has failed. It was done without. */
  readonly failure?: Error;
  /**
   * Adds to the transaction that settles the job, and only there: what it writes and what becomes of the job are never told
   * apart. `next` is when the job is tried again. Sends its statements, and waits for nothing.
   */
  write(tx: Tx, next: Date | undefined): void;
}

/** Makes a kind of work. */
export function defineWork<Data>(work: WorkKind<Data>): WorkKind<Data> {
  return work;
}

/** No further attempt would help: the job becomes a dead letter, and its lane does not count as failing. */
export class Hopeless extends Error {
  override readonly name = "Hopeless";
}

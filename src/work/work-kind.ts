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
 * lets the others pass.
 */
export interface WorkKind<Data> {
  /** In lower case; it names the work in the database, in logs and in metrics. */
  readonly kind: string;
  /** How many jobs of a lane run at once. */
  readonly width: number;
  /** Milliseconds to wait after each failure; after the last of them a job that fails is a dead letter. */
  readonly schedule: readonly number[];
  /** Milliseconds that an attempt may take. */
  readonly timeout: number;
  /** Does the work. Throws when it has failed, `Hopeless` when it always will. The signal aborts when it is to stop. */
  run(job: Job<Data>, signal: AbortSignal): Promise<void>;
}

/** Makes a kind of work. */
export function defineWork<Data>(work: WorkKind<Data>): WorkKind<Data> {
  return work;
}

/** No further attempt would help: the job becomes a dead letter, and its lane does not count as failing. */
export class Hopeless extends Error {
  override readonly name = "Hopeless";
}

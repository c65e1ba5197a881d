import type { JobKind } from "../kernel/job-kind.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { deleteJobs, findQueues, insertJobs } from "./store.ts";

export interface NewJob<Data> {
  readonly queue: string;
  readonly data: Data;
  /** Slots are shared fairly between owners. By default, the queue is its own owner. */
  readonly owner?: string;
  /** Within a queue, first attempts of jobs with the same key run one after the other. */
  readonly order?: string;
}

/** A job kind, identified by name. */
type Named = Pick<JobKind<unknown>, "kind">;

/** Adds jobs, which any gateway runs after the commit of their transaction. */
export interface JobQueues {
  /**
   * Adds a job to the transaction of its cause. Must be the last call in a transaction, because the queue stays locked
   * until the commit. To avoid deadlocks, add jobs for several queues together, or in the order of kind and queue.
   */
  enqueue<Data>(tx: Tx, jobKind: Named, job: NewJob<Data>): void;
  /** Adds many jobs with one statement. Keeps the given order within a queue. */
  enqueueAll<Data>(tx: Tx, jobKind: Named, jobs: readonly NewJob<Data>[]): void;
  /** Returns the given queues that have pending jobs. May include empty queues that ran or failed recently. */
  findBusy(on: Queryable, jobKind: Named, queues: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Deletes up to `limit` pending jobs of a queue and returns their data. A running job is not aborted, but its outcome
   * is discarded. Skips jobs with an outcome that is being stored.
   */
  drop<Data>(tx: Tx, jobKind: Named, queue: string, limit: number): Promise<Data[]>;
}

export function createJobQueues({ bus, clock }: Pick<PlatformParts, "bus" | "clock">): JobQueues {
  function enqueueAll<Data>(tx: Tx, { kind }: Named, jobs: readonly NewJob<Data>[]): void {
    if (jobs.length === 0) return;
    insertJobs(tx, kind, jobs, new Date(clock.now()));
    const queues = new Set(jobs.map(({ queue }) => queue));
    tx.afterCommit(() => bus.publish("jobs", [kind, ...queues].join("\n")));
  }
  return {
    enqueueAll,
    enqueue: (tx, jobKind, job) => enqueueAll(tx, jobKind, [job]),
    findBusy: async (on, { kind }, queues) => new Set(await findQueues(on, kind, queues)),
    // Data was written by `enqueueAll` for the same kind.
    drop: <Data>(tx: Tx, { kind }: Named, queue: string, limit: number) =>
      deleteJobs(tx, kind, queue, limit) as Promise<Data[]>,
  };
}

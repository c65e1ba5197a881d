import type { WorkKind } from "../kernel/work-kind.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { deleteJobs, findLanes, insertJobs } from "./store.ts";

export interface NewJob<Data> {
  readonly lane: string;
  readonly data: Data;
  /** Slots are shared fairly between owners. By default, the queue is its own owner. */
  readonly owner?: string;
  /** Within a queue, first attempts of jobs with the same key run one after the other. */
  readonly order?: string;
}

/** Kind of a job by name. */
type Named = Pick<WorkKind<unknown>, "kind">;

/** Adds jobs that any gateway runs once their transaction has committed. */
export interface Work {
  /**
   * Adds a job to the transaction of its cause. Call it last, because the queue stays locked until the commit. To avoid
   * deadlocks, add jobs for several queues together or in the order of their keys.
   */
  enqueue<Data>(tx: Tx, work: Named, job: NewJob<Data>): void;
  /** Adds many jobs with one statement. Keeps the given order within a queue. */
  enqueueAll<Data>(tx: Tx, work: Named, jobs: readonly NewJob<Data>[]): void;
  /** Returns the given queues that have jobs. May include a queue that has just become empty. */
  findBusy(on: Queryable, work: Named, lanes: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Deletes up to `limit` pending jobs of a queue and returns their data. A running job is not aborted, but its outcome
   * is discarded. A job being settled stays.
   */
  drop<Data>(tx: Tx, work: Named, lane: string, limit: number): Promise<Data[]>;
}

export function createWork({ bus, clock }: { readonly bus: Bus; readonly clock: Clock }): Work {
  function enqueueAll<Data>(tx: Tx, { kind }: Named, jobs: readonly NewJob<Data>[]): void {
    if (jobs.length === 0) return;
    insertJobs(tx, kind, jobs, new Date(clock.now()));
    const lanes = new Set(jobs.map(({ lane }) => lane));
    tx.afterCommit(() => bus.publish("work", [kind, ...lanes].join("\n")));
  }
  return {
    enqueueAll,
    enqueue: (tx, work, job) => enqueueAll(tx, work, [job]),
    findBusy: async (on, { kind }, lanes) => new Set(await findLanes(on, kind, lanes)),
    // Data was written by `enqueueAll` for the same kind.
    drop: <Data>(tx: Tx, { kind }: Named, lane: string, limit: number) =>
      deleteJobs(tx, kind, lane, limit) as Promise<Data[]>,
  };
}

import type { WorkKind } from "../kernel/work-kind.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { deleteJobs, findLanes, insertJobs } from "./store.ts";

/** A job to be added. */
export interface NewJob<Data> {
  readonly lane: string;
  readonly data: Data;
  /** Whose the lane is: places are shared out between owners. A lane of nobody is its own. */
  readonly owner?: string;
  /** Jobs of a lane with the same key have their first attempts one after the other. */
  readonly order?: string;
}

/** Which work is meant: its name is enough. */
type Named = Pick<WorkKind<unknown>, "kind">;

/** Takes work that is to be done once its cause is committed, by whichever gateway does jobs. */
export interface Work {
  /**
   * Adds a job to the transaction of its cause. Better last in it: until the commit nobody else adds to the same lane. Jobs
   * for several lanes are added together, or in the order of their keys, so that two transactions do not wait for each other.
   */
  enqueue<Data>(tx: Tx, work: Named, job: NewJob<Data>): void;
  /** Adds many jobs with one statement: those of a lane in the order given. */
  enqueueAll<Data>(tx: Tx, work: Named, jobs: readonly NewJob<Data>[]): void;
  /** Says which of some lanes have jobs. It may name one that has none any more, but leaves out none that has. */
  findBusy(on: Queryable, work: Named, lanes: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Deletes jobs of a lane that are still to be done, so many at most, and gives their data. One that runs meanwhile is
   * ended by nobody, but what comes of it is written nowhere; one that is being settled stays.
   */
  drop<Data>(tx: Tx, work: Named, lane: string, limit: number): Promise<Data[]>;
}

/** Makes what takes work. */
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
    // The boundary at which data is read again that `enqueueAll` has written for the same kind.
    drop: <Data>(tx: Tx, { kind }: Named, lane: string, limit: number) =>
      deleteJobs(tx, kind, lane, limit) as Promise<Data[]>,
  };
}

import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { insertJob } from "./store.ts";
import type { WorkKind } from "./work-kind.ts";

/** Takes work that is to be done once its cause is committed, by whichever gateway does jobs. */
export interface Work {
  /**
   * Adds a job to the transaction of its cause. Better last in it: until the commit nobody else adds to the same lane. Jobs
   * for several lanes are added in the order of their keys, so that two transactions do not wait for each other.
   */
  enqueue<Data>(tx: Tx, work: WorkKind<Data>, job: { readonly lane: string; readonly data: Data }): void;
}

/** Makes what takes work. */
export function createWork({ bus, clock }: { readonly bus: Bus; readonly clock: Clock }): Work {
  return {
    enqueue(tx, { kind }, { lane, data }) {
      insertJob(tx, { kind, lane, data }, new Date(clock.now()));
      tx.afterCommit(() => bus.publish("work", `${kind} ${lane}`));
    },
  };
}

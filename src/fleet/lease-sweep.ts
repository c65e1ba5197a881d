import { Counter, Gauge } from "prom-client";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { SessionKeeper, WorkerEnd } from "./session-keeper.ts";
import {
  countSlots,
  endAllLeases,
  lockSweep,
  markLostWorkers,
  recordIdleSweep,
  recordSweep,
  releaseLostSlots,
  renewAllLeases,
} from "./store.ts";

/** Milliseconds. With a lease of 8 s, sessions of a lost worker end within 10 s. */
const sweepEvery = 1_000;

/** Ends the sessions of workers with expired leases, and sessions past their deadline to start or to run. */
export interface LeaseSweep extends RepeatedJob {
  /** Ends the sessions of every worker. Called after the embedded worker, the only one, has ended. */
  endAll(end: WorkerEnd): Promise<void>;
}

export interface LeaseSweepParts extends Pick<PlatformParts, "db" | "bus" | "clock" | "log" | "metrics"> {
  readonly keeper: SessionKeeper;
}

export function createLeaseSweep({ db, bus, clock, log, metrics, keeper }: LeaseSweepParts): LeaseSweep {
  const registers = [metrics];
  const workersLost = new Counter({
    name: "pilothouse_workers_lost_total",
    help: "Workers whose lease expired.",
    registers,
  });
  const slots = new Gauge({
    name: "pilothouse_slots",
    help: "Slots of live workers: held, free, or closed if the worker accepts no new sessions.",
    labelNames: ["state"],
    registers,
  });

  async function endLost(tx: Tx, end: WorkerEnd): Promise<number> {
    const lost = await markLostWorkers(tx);
    const ended = await keeper.endOrphaned(tx, end);
    await releaseLostSlots(tx);
    // An orderly exit of a worker without sessions is not logged.
    if (lost.length + ended > 0) log[ended > 0 ? "warn" : "info"]({ worker_ids: lost, sessions: ended }, end.detail);
    return lost.length;
  }

  /**
   * Ends what is due. After a gap between sweeps, renews all leases instead. Does nothing while another process is
   * sweeping.
   */
  async function sweepDue(): Promise<void> {
    await db.transaction(async (tx) => {
      const locked = await lockSweep(tx);
      if (!locked) return;
      if (locked.afterGap) {
        await renewAllLeases(tx);
        return;
      }
      workersLost.inc(await endLost(tx, { reason: "worker_lost", detail: "the lease of the worker expired" }));
      const overdue = await keeper.endOverdue(tx);
      if (overdue > 0) log.warn({ sessions: overdue }, "ended sessions past their deadline");
      // A long sweep must not look like an outage to the next sweep.
      await recordSweep(tx);
      tx.afterCommit(() => bus.publish("capacity", ""));
    });
  }

  async function sweep(): Promise<void> {
    if (!(await recordIdleSweep(db, keeper.overdueExist))) await sweepDue();
    for (const [state, count] of Object.entries(await countSlots(db))) slots.set({ state }, count);
  }

  const failureMessage = "failed to sweep leases";

  return {
    ...createRepeatedJob({ run: sweep, every: sweepEvery, failureMessage }, { clock, log }),
    endAll: (end) =>
      db.transaction(async (tx) => {
        await endAllLeases(tx);
        await endLost(tx, end);
      }),
  };
}

import { Counter, Gauge, type Registry } from "prom-client";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { SessionKeeper, WorkerEnd } from "./session-keeper.ts";
import {
  countSlots,
  endAllLeases,
  loseOverdueWorkers,
  noteSweep,
  releaseLostSlots,
  renewAllLeases,
  takeSweepTurn,
} from "./store.ts";

/** Milliseconds: a lease of 8 s and this leave a lost worker's sessions ended within 10 s. */
const sweepEvery = 1_000;

/** Looks for workers that missed their lease, and for sessions that outstay their time to start or to run. */
export interface LeaseSweep extends RepeatedJob {
  /** Ends what runs on every worker, for a gateway whose own worker, the only one, is known to have ended. */
  endAll(end: WorkerEnd): Promise<void>;
}

export interface LeaseSweepParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  readonly keeper: SessionKeeper;
}

/** Makes the sweep. */
export function createLeaseSweep({ db, bus, clock, log, metrics, keeper }: LeaseSweepParts): LeaseSweep {
  const registers = [metrics];
  const workersLost = new Counter({
    name: "pilothouse_workers_lost_total",
    help: "Workers that missed their lease.",
    registers,
  });
  const slots = new Gauge({
    name: "pilothouse_slots",
    help: "Slots of live workers: held, free, or closed where the worker takes no new sessions.",
    labelNames: ["state"],
    registers,
  });

  async function endLost(tx: Tx, end: WorkerEnd): Promise<number> {
    const lost = await loseOverdueWorkers(tx);
    const ended = await keeper.endOrphaned(tx, end);
    await releaseLostSlots(tx);
    // Workers that are stopped without sessions are no news.
    if (lost.length + ended > 0) log[ended > 0 ? "warn" : "info"]({ worker_ids: lost, sessions: ended }, end.detail);
    return lost.length;
  }

  /** Does nothing while another gateway is sweeping. */
  async function sweep(): Promise<void> {
    await db.transaction(async (tx) => {
      const turn = await takeSweepTurn(tx);
      if (!turn) return;
      if (turn.afterGap) {
        await renewAllLeases(tx);
        return;
      }
      workersLost.inc(await endLost(tx, { reason: "worker_lost", detail: "the worker missed its lease" }));
      const overdue = await keeper.endOverdue(tx);
      if (overdue > 0)
        log.warn({ sessions: overdue }, "sessions that were not live in time, or whose time was up, were ended");
      // However long this one took, the next one must not take it for an outage.
      await noteSweep(tx);
      tx.afterCommit(() => bus.publish("capacity", ""));
    });
    for (const [state, count] of Object.entries(await countSlots(db))) slots.set({ state }, count);
  }

  const complaint = "leases cannot be swept at the moment";

  return {
    ...createRepeatedJob({ run: sweep, every: sweepEvery, complaint }, { clock, log }),
    endAll: (end) =>
      db.transaction(async (tx) => {
        await endAllLeases(tx);
        await endLost(tx, end);
      }),
  };
}

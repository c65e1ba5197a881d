import { sql } from "kysely";
import type { Database } from "../platform/postgres/database.ts";
import { heldCount, holdsLease } from "./store.ts";

/**
 * Slots to keep free: a share of the needed slots, and a minimum. Needed because a waiting create times out before a
 * new machine has started.
 */
const headroom = { share: 0.2, slots: 2 };

/** Demand of a pool of workers, for autoscalers. */
export interface PoolDemand {
  /** Number of workers needed for the slots in use, the waiting creates and fetches, and the headroom. */
  readonly wanted_workers: number;
  /** Slots in use by sessions and fetches. If a worker is under resource pressure, all its slots count as in use. */
  readonly held_slots: number;
  /** Creates and fetches that wait for a runtime of the pool. A wait counts for each pool that has the runtime. */
  readonly waiting: number;
  readonly headroom_slots: number;
  /** Slots of the worker that registered last. */
  readonly slots_per_worker: number;
}

/**
 * Returns the demand of a pool, or undefined if no worker has registered with the pool. Draining workers do not count,
 * because their pods are already being replaced.
 */
export async function findPoolDemand(db: Database, pool: string): Promise<PoolDemand | undefined> {
  const latest = await db.sql
    .selectFrom("workers")
    .select(["slots", "runtimes"])
    .where("pool", "=", pool)
    .orderBy("registered_at", "desc")
    .limit(1)
    .executeTakeFirst();
  if (!latest) return undefined;
  const [used, waits] = await Promise.all([
    db.sql
      .selectFrom("workers")
      .innerJoin("worker_leases", "worker_id", "id")
      .select(
        sql<number>`coalesce(sum(case when closed_by is null then ${heldCount} else slots end), 0)::int`.as("held"),
      )
      .where("pool", "=", pool)
      .where("draining", "=", false)
      .where(holdsLease)
      .executeTakeFirstOrThrow(),
    db.sql
      .selectFrom("capacity_waits")
      .select(sql<number>`count(*)::int`.as("waiting"))
      .where("runtime", "in", latest.runtimes)
      .where("waits_until", ">", sql<Date>`app_now()`)
      .executeTakeFirstOrThrow(),
  ]);
  const needed = used.held + waits.waiting;
  const spare = Math.max(headroom.slots, Math.ceil(needed * headroom.share));
  return {
    wanted_workers: Math.ceil((needed + spare) / latest.slots),
    held_slots: used.held,
    waiting: waits.waiting,
    headroom_slots: spare,
    slots_per_worker: latest.slots,
  };
}

import { sql } from "kysely";
import type { Queryable } from "../platform/postgres/database.ts";
import { drainRequested, heldSlots, holdsLease } from "./store.ts";

/** A worker as the operator sees it. */
interface ListedWorker {
  readonly id: string;
  /** Address for gateways: `host:port`, or `unix:/path`. */
  readonly address: string;
  /** `closed`: under resource pressure. `failing`: browsers do not launch. `silent`: no heartbeat within the lease. */
  readonly state: "ready" | "closed" | "failing" | "draining" | "silent" | "lost" | "left";
  readonly slots: number;
  /** Slots in use. */
  readonly held: number;
  readonly release: string;
  readonly heard_at: Date | null;
}

/** Lists the workers that run, and those that left or were lost within the last day, the oldest first. */
export async function listWorkers(db: Queryable): Promise<ListedWorker[]> {
  return db.sql
    .selectFrom("workers")
    .innerJoin("worker_leases", "worker_id", "id")
    .select(["id", "address"])
    .select(
      sql<
        ListedWorker["state"]
      >`case when has_left and lost_at is not null then 'left' when lost_at is not null then 'lost' when not (${holdsLease}) then 'silent'
        when draining then 'draining' when closed_by is not null then 'closed' when launches_fail then 'failing'
        else 'ready' end`.as("state"),
    )
    .select("slots")
    .select(heldSlots)
    .select(["release", "heard_at"])
    .where(sql<boolean>`lost_at is null or lost_at > app_now() - interval '1 day'`)
    .orderBy("id")
    .execute();
}

/**
 * Stops placements on a worker. The response to the worker's next heartbeat requests the drain. Returns false if the
 * worker is unknown, lost, or already draining by request.
 */
export async function requestDrain(db: Queryable, id: string): Promise<boolean> {
  const row = await db.sql
    .updateTable("worker_leases")
    .set({ draining: true, drain_incarnation: sql`incarnation` })
    .where("worker_id", "=", id)
    .where("lost_at", "is", null)
    .where(sql<boolean>`not ${drainRequested}`)
    .returning("worker_id")
    .executeTakeFirst();
  return row !== undefined;
}

import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** Address and credentials to call a worker. */
export interface WorkerAddress {
  readonly id: string;
  readonly address: string;
  readonly secretHash: Buffer;
}

export interface WorkerRegistration {
  readonly id: string;
  readonly secretHash: Buffer;
  readonly address: string;
  readonly runtimes: readonly string[];
  readonly slots: number;
  readonly pool: string;
  readonly isolation: string;
  readonly unsandboxed: boolean;
  readonly bootId: string;
  readonly release: string;
  readonly incarnation: bigint;
}

/** Milliseconds that a worker may go without an accepted heartbeat. */
export const leaseMs = 8_000;

/** Milliseconds. A longer gap between sweeps means that no control process could write, so all leases are renewed. */
const sweepGapMs = 3_000;

const isAfterGap = sql<boolean>`(app_now() - swept_at > ${sweepGapMs} * interval '1 millisecond')`;

const inMilliseconds = (ms: number) =>
  sql<Date>`date_trunc('milliseconds', app_now()) + ${ms} * interval '1 millisecond'`;

/** Finds and locks the row of a registering worker by id, or else by boot id. */
export async function lockRegistered(tx: Tx, id: string, bootId: string) {
  return tx.sql
    .selectFrom("workers")
    .innerJoin("worker_leases", "worker_id", "id")
    .select(["id", "secret_hash", "boot_id", "incarnation"])
    .where((where) => where.or([where("id", "=", id), where("boot_id", "=", bootId)]))
    .orderBy((order) => order("id", "=", id), "desc")
    .limit(1)
    .forUpdate("workers")
    .executeTakeFirst();
}

/**
 * Writes a worker's row with a new lease. The worker accepts sessions from its first heartbeat. Before that, a worker
 * may lack its secret and refuse commands.
 */
export async function saveWorker(tx: Tx, worker: WorkerRegistration): Promise<void> {
  const values = {
    secret_hash: worker.secretHash,
    address: worker.address,
    runtimes: [...worker.runtimes],
    slots: worker.slots,
    pool: worker.pool,
    isolation: worker.isolation,
    unsandboxed: worker.unsandboxed,
    boot_id: worker.bootId,
    release: worker.release,
    registered_at: sql<Date>`app_now()`,
  };
  await tx.sql
    .insertInto("workers")
    .values({ id: worker.id, ...values })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(values))
    .execute();
  const lease = {
    incarnation: worker.incarnation,
    lease_until: inMilliseconds(leaseMs),
    draining: true,
    closed_by: null,
    launches_fail: false,
    lost_at: null,
    has_left: false,
  };
  await tx.sql
    .insertInto("worker_leases")
    .values({ worker_id: worker.id, ...lease })
    .onConflict((conflict) => conflict.column("worker_id").doUpdateSet(lease))
    .execute();
}

export async function findSecretHash(db: Queryable, id: string): Promise<Buffer | undefined> {
  const row = await db.sql.selectFrom("workers").select("secret_hash").where("id", "=", id).executeTakeFirst();
  return row?.secret_hash;
}

export interface LeaseRenewal {
  readonly id: string;
  readonly incarnation: bigint;
  readonly draining: boolean;
  /** Empty unless resource pressure closes the worker to new sessions. */
  readonly closedBy: string;
  readonly launchesFail: boolean;
  /** If true, ends the lease instead, without counting the worker as lost. */
  readonly leaving: boolean;
}

/** Whether an operator asked this incarnation to drain. */
export const drainRequested: RawBuilder<boolean> = sql<boolean>`coalesce(drain_incarnation = incarnation, false)`;

const holdsEnded = sql<boolean>`exists (
  select from sessions where worker_id = worker_leases.worker_id and slot_held and status in ('destroyed', 'errored')
)`;

/**
 * Renews a lease. Returns whether the worker must drain, and whether ended sessions hold slots of the worker. Returns
 * undefined if the worker has restarted since. The lease of a lost worker is renewed too, but its sessions have ended.
 * Only short statements (registrations, sweeps, requests to drain) lock the row.
 */
export async function renewLease(
  db: Queryable,
  renewal: LeaseRenewal,
): Promise<{ drain: boolean; holdsEnded: boolean } | undefined> {
  const { id, incarnation, draining, closedBy, launchesFail, leaving } = renewal;
  return db.sql
    .updateTable("worker_leases")
    .set({
      lease_until: inMilliseconds(leaving ? 0 : leaseMs),
      heard_at: inMilliseconds(0),
      draining: sql<boolean>`${draining} or ${drainRequested}`,
      closed_by: closedBy || null,
      launches_fail: launchesFail,
      lost_at: leaving ? inMilliseconds(0) : null,
      has_left: leaving,
    })
    .where("worker_id", "=", id)
    .where("incarnation", "=", String(incarnation))
    .returning(drainRequested.as("drain"))
    .returning(holdsEnded.as("holdsEnded"))
    .executeTakeFirst();
}

/**
 * Returns whether the incarnation is current, and locks it until the transaction ends. Registrations lock the same row
 * of `workers`. The row of the lease stays unlocked, so that a report that waits for the lock of a session does not
 * block heartbeats.
 */
export async function lockIncarnation(tx: Tx, id: string, incarnation: bigint): Promise<boolean> {
  tx.send(tx.sql.selectFrom("workers").select("id").where("id", "=", id).forKeyShare());
  return isIncarnation(tx, id, incarnation);
}

async function isIncarnation(db: Queryable, id: string, incarnation: bigint): Promise<boolean> {
  const row = await db.sql
    .selectFrom("worker_leases")
    .select("worker_id")
    .where("worker_id", "=", id)
    .where("incarnation", "=", String(incarnation))
    .executeTakeFirst();
  return row !== undefined;
}

/** Ended sessions that still hold a slot. Skips rows that another transaction has locked. */
const endedWithSlot = (db: Queryable) =>
  db.sql
    .selectFrom("sessions")
    .select("id")
    .where("slot_held", "=", true)
    .where("status", "in", ["destroyed", "errored"])
    .forUpdate()
    .skipLocked();

/** Frees the slots of ended sessions that are not in `held`. Returns the number of freed slots. */
export async function releaseSlots(
  db: Queryable,
  { id, incarnation }: Pick<LeaseRenewal, "id" | "incarnation">,
  held: readonly string[],
): Promise<number> {
  const left = endedWithSlot(db)
    .where("worker_id", "=", id)
    .where(sql<SqlBool>`exists (select from worker_leases where worker_id = ${id} and incarnation = ${incarnation})`)
    .where("id", "not in", held.length > 0 ? [...held] : [""]);
  const result = await db.sql
    .updateTable("sessions")
    .set({ slot_held: false })
    .where("id", "in", left)
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** Frees the slots that ended sessions hold on workers lost within the last minute. */
export async function releaseLostSlots(tx: Tx): Promise<void> {
  const left = endedWithSlot(tx).where("worker_id", "in", recentlyLost(tx));
  await tx.sql.updateTable("sessions").set({ slot_held: false }).where("id", "in", left).execute();
}

/** Frees the slots that ended sessions hold on a restarted worker. */
export async function releaseAllSlots(tx: Tx, workerId: string): Promise<void> {
  await tx.sql
    .updateTable("sessions")
    .set({ slot_held: false })
    .where("worker_id", "=", workerId)
    .where("slot_held", "=", true)
    .where("status", "in", ["destroyed", "errored"])
    .execute();
}

export const holdsLease: Expression<SqlBool> = sql<SqlBool>`lost_at is null and lease_until > app_now()`;

/** Condition for new sessions: the worker is neither draining nor closed by resource pressure. */
const acceptsSessions: Expression<SqlBool> = sql<SqlBool>`not draining and closed_by is null`;

/** Returns the live workers with their runtimes, least loaded first. */
export async function findCandidates(db: Queryable) {
  return db.sql
    .selectFrom("workers")
    .innerJoin("worker_leases", "worker_id", "id")
    .select(["id", "runtimes", "slots", "launches_fail"])
    .select(sql<boolean>`${acceptsSessions}`.as("open"))
    .select(heldSlots)
    .where(holdsLease)
    .orderBy(sql`${heldCount} / slots::float`)
    .orderBy("id")
    .execute();
}

/** Number of slots in use: by sessions, and by browsers that run fetches. */
export const heldCount = sql<number>`(
  (select count(*)::int from sessions where sessions.worker_id = workers.id and slot_held)
  + (select count(distinct browser_id)::int from fetches where fetches.worker_id = workers.id and lapses_at > app_now())
)`;
export const heldSlots = heldCount.as("held");

export async function findWorker(db: Queryable, id: string): Promise<WorkerAddress | undefined> {
  const row = await db.sql
    .selectFrom("workers")
    .select(["id", "address", "secret_hash"])
    .where("id", "=", id)
    .executeTakeFirst();
  return row && { id: row.id, address: row.address, secretHash: row.secret_hash };
}

/** Locks a worker against other placements and rereads it under the lock. */
export async function lockCandidate(tx: Tx, id: string) {
  tx.send(tx.sql.selectFrom("workers").select("id").where("id", "=", id).forNoKeyUpdate());
  // Needs a separate statement to see what was committed while waiting for the lock.
  return tx.sql
    .selectFrom("workers")
    .innerJoin("worker_leases", "worker_id", "id")
    .select(["id", "address", "secret_hash", "slots"])
    .select(heldSlots)
    .where("id", "=", id)
    .where(acceptsSessions)
    .where(holdsLease)
    .executeTakeFirst();
}

/**
 * Records a sweep that has nothing to do: the last sweep was recent, no worker is overdue or recently lost, and
 * `overdueExist` does not hold. Returns false without a change if there is something to do or another process sweeps.
 */
export async function recordIdleSweep(db: Queryable, overdueExist: RawBuilder<SqlBool>): Promise<boolean> {
  const overdue = sql`lost_at is null and lease_until < app_now()`;
  const idle = db.sql
    .selectFrom("lease_sweep")
    .select(sql`ctid`.as("ctid"))
    .where(sql<SqlBool>`not ${isAfterGap}`)
    .where(sql<SqlBool>`not exists (select from worker_leases where ${overdue} or lost_at > ${recentLoss})`)
    .where(sql<SqlBool>`not ${overdueExist}`)
    .forUpdate()
    .skipLocked();
  const update = db.sql.updateTable("lease_sweep").set({ swept_at: sql<Date>`app_now()` });
  const { numUpdatedRows } = await update.where(sql`ctid`, "in", idle).executeTakeFirstOrThrow();
  return numUpdatedRows > 0;
}

/** Locks the sweep for this process and records its time. Returns undefined if another process holds the lock. */
export async function lockSweep(tx: Tx): Promise<{ afterGap: boolean } | undefined> {
  const row = await tx.sql
    .selectFrom("lease_sweep")
    .select(isAfterGap.as("after_gap"))
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
  if (!row) return undefined;
  await recordSweep(tx);
  return { afterGap: row.after_gap };
}

/** Records the time of the sweep. */
export async function recordSweep(tx: Tx): Promise<void> {
  await tx.sql.updateTable("lease_sweep").set({ swept_at: sql<Date>`app_now()` }).execute();
}

/** Renews the lease of every worker that is not lost. */
export async function renewAllLeases(tx: Tx): Promise<void> {
  await tx.sql
    .updateTable("worker_leases")
    .set({ lease_until: inMilliseconds(leaseMs) })
    .where("lost_at", "is", null)
    .execute();
}

/** Milliseconds for which the sweep revisits a lost worker, because rows of its sessions may have been locked. */
const recentlyLostMs = 60_000;

const recentLoss = inMilliseconds(-recentlyLostMs);

export const recentlyLost = (db: Queryable) =>
  db.sql.selectFrom("worker_leases").select("worker_id").where("lost_at", ">", recentLoss);

/** Marks workers with expired leases as lost. Returns their ids. */
export async function markLostWorkers(tx: Tx): Promise<string[]> {
  const rows = await tx.sql
    .updateTable("worker_leases")
    .set({ lost_at: sql<Date>`app_now()` })
    .where("lost_at", "is", null)
    .where("lease_until", "<", sql<Date>`app_now()`)
    .returning("worker_id")
    .execute();
  return rows.map(({ worker_id }) => worker_id);
}

/** Ends the lease of every worker. */
export async function endAllLeases(tx: Tx): Promise<void> {
  await tx.sql
    .updateTable("worker_leases")
    .set({ lease_until: sql<Date>`app_now() - interval '1 s'` })
    .where("lost_at", "is", null)
    .execute();
}

/** Counts the slots of live workers: held, free, and free on workers that accept no new sessions. */
export async function countSlots(db: Queryable): Promise<{ held: number; free: number; closed: number }> {
  const left = sql`greatest(slots - ${heldCount}, 0)`;
  const row = await db.sql
    .selectFrom("workers")
    .innerJoin("worker_leases", "worker_id", "id")
    .select(sql<number>`coalesce(sum(${heldCount}), 0)::int`.as("held"))
    .select(sql<number>`coalesce(sum(${left}) filter (where ${acceptsSessions}), 0)::int`.as("free"))
    .select(sql<number>`coalesce(sum(${left}) filter (where not (${acceptsSessions})), 0)::int`.as("closed"))
    .where(holdsLease)
    .executeTakeFirstOrThrow();
  return row;
}

/** Counts the live workers that are not draining, and those among them whose browsers fail to launch. */
export async function countLaunchers(db: Queryable): Promise<{ workers: number; failing: number; hasBegun: boolean }> {
  return await db.sql
    .selectFrom("worker_leases")
    .select(sql<number>`count(*)::int`.as("workers"))
    .select(sql<number>`(count(*) filter (where launches_fail))::int`.as("failing"))
    .select(sql<boolean>`exists (select from workers)`.as("hasBegun"))
    .where(holdsLease)
    .where("draining", "=", false)
    .executeTakeFirstOrThrow();
}

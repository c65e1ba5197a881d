import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Database, Queryable, Tx } from "../platform/postgres/database.ts";
import { isHeld } from "./store.ts";

/** Use of a profile by a session, until its save is accepted or has failed. */
export interface ProfileUse {
  readonly session_id: string;
  readonly profile_id: string;
  readonly account_id: string;
  /** The version that the session restored. */
  readonly version: string;
}

const columns = ["session_id", "profile_id", "account_id", "version"] as const;

const fromNow = (ms: number) => sql<Date>`app_now() + ${ms} * interval '1 millisecond'`;

export async function findHolder(tx: Tx, profileId: string) {
  return tx.sql
    .selectFrom("profile_uses")
    .select(["session_id", "held_until"])
    .where("profile_id", "=", profileId)
    .where(isHeld)
    .executeTakeFirst();
}

/** Inserts the use of a profile by a session that is being launched. */
export async function insertUse(tx: Tx, use: ProfileUse): Promise<void> {
  await tx.sql.insertInto("profile_uses").values(use).execute();
}

/**
 * Records the end of a session. Other sessions wait `heldForMs` for its save. After `dueInMs` without a save, the save
 * counts as failed.
 */
export async function endUse(tx: Tx, sessionId: string, heldForMs: number, dueInMs: number): Promise<void> {
  await tx.sql
    .updateTable("profile_uses")
    .set({ held_until: fromNow(heldForMs), due_at: fromNow(dueInMs) })
    .where("session_id", "=", sessionId)
    .execute();
}

/**
 * Deletes the use of a profile by a session. Returns undefined if there is no such use, because the save was already
 * settled.
 */
export async function settleUse(tx: Tx, sessionId: string): Promise<ProfileUse | undefined> {
  return tx.sql.deleteFrom("profile_uses").where("session_id", "=", sessionId).returning(columns).executeTakeFirst();
}

/** Deletes and returns the uses of a profile by ended sessions. Their saves can no longer be accepted. */
export async function settleLateUses(tx: Tx, profileId: string): Promise<ProfileUse[]> {
  return tx.sql
    .deleteFrom("profile_uses")
    .where("profile_id", "=", profileId)
    .where("due_at", "is not", null)
    .returning(columns)
    .execute();
}

/** Condition: the save of an ended session is overdue. */
export const usesAreOverdue: RawBuilder<SqlBool> = sql`exists (select from profile_uses where due_at < app_now())`;

/** Finds sessions with overdue saves. */
export async function findOverdue(db: Database, limit: number): Promise<string[]> {
  const rows = await db.sql
    .selectFrom("profile_uses")
    .select("session_id")
    .where("due_at", "<", sql<Date>`app_now()`)
    .limit(limit)
    .execute();
  return rows.map(({ session_id }) => session_id);
}

/** Finds the use of a profile by a session, and the worker of the session. */
export async function findPlacedUse(db: Database, sessionId: string) {
  return db.sql
    .selectFrom("profile_uses as u")
    .innerJoin("sessions as s", "s.id", "u.session_id")
    .innerJoin("workers as w", "w.id", "s.worker_id")
    .select(["u.session_id", "u.profile_id", "u.account_id", "u.version", "u.due_at", "s.placement_epoch"])
    .select(["w.id as worker_id", "w.address", "w.secret_hash"])
    .where("u.session_id", "=", sessionId)
    .executeTakeFirst();
}

/**
 * Claims the save of a session for this gateway. Returns false if the save is already claimed or settled. If a gateway
 * crashes, its claim expires and another gateway can claim the save.
 */
export async function claimSave(db: Database, sessionId: string, forMs: number): Promise<boolean> {
  const claimed = await db.sql
    .updateTable("profile_uses")
    .set({ taken_until: fromNow(forMs) })
    .where("session_id", "=", sessionId)
    .where((where) => where.or([where("taken_until", "is", null), where("taken_until", "<", fromNow(0))]))
    .executeTakeFirst();
  return claimed.numUpdatedRows > 0n;
}

/** Extends the claim of this gateway on a save; 0 releases the claim. */
export async function renewClaim(db: Database, sessionId: string, forMs: number): Promise<void> {
  const taken_until = forMs > 0 ? fromNow(forMs) : null;
  await db.sql.updateTable("profile_uses").set({ taken_until }).where("session_id", "=", sessionId).execute();
}

/** Returns those of the given sessions that were placed on the worker and have an unsettled use of a profile. */
export async function findOutstanding(db: Database, workerId: string, sessionIds: readonly string[]) {
  return db.sql
    .selectFrom("profile_uses as u")
    .innerJoin("sessions as s", "s.id", "u.session_id")
    .select(["u.session_id", "u.due_at", "s.placement_epoch"])
    .where("s.worker_id", "=", workerId)
    .where("u.session_id", "in", [...sessionIds])
    .execute();
}

/** Returns the version that a session restores; 0 if the session has no profile or its profile was never saved. */
export async function findUsedVersion(on: Queryable, sessionId: string): Promise<bigint> {
  const use = on.sql.selectFrom("profile_uses").select("version").where("session_id", "=", sessionId);
  return BigInt((await use.executeTakeFirst())?.version ?? 0);
}

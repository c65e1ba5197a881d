import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";

/** Stores the encrypted seed of a new enrolment. Returns false if the user already has a second factor. */
export async function beginEnrolment(tx: Tx, userId: string, seed: Buffer, at: Date): Promise<boolean> {
  const row = await tx.sql
    .updateTable("users")
    .set({ totp_seed: seed, totp_begun_at: at, totp_counter: null })
    .where("id", "=", userId)
    .where("totp_enrolled_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Completes an enrolment with the code of a time step. Returns false if the enrolment was completed or restarted
 * meanwhile.
 */
export async function endEnrolment(
  tx: Tx,
  enrolment: { readonly userId: string; readonly seed: Buffer; readonly counter: number },
  at: Date,
): Promise<boolean> {
  const row = await tx.sql
    .updateTable("users")
    .set({ totp_enrolled_at: at, totp_counter: String(enrolment.counter) })
    .where("id", "=", enrolment.userId)
    .where("totp_enrolled_at", "is", null)
    .where("totp_seed", "=", enrolment.seed)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Marks the code of a time step as used. Returns false if this or a later step was already used; only one of several
 * concurrent calls succeeds.
 */
export async function takeCounter(tx: Tx, userId: string, counter: number): Promise<boolean> {
  const row = await tx.sql
    .updateTable("users")
    .set({ totp_counter: String(counter) })
    .where("id", "=", userId)
    .where("totp_enrolled_at", "is not", null)
    .where("totp_counter", "<", String(counter))
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Orders the removal of a user's second factor. Returns false if the user has no second factor. */
export async function orderRemoval(tx: Tx, userId: string): Promise<boolean> {
  const user = tx.sql.selectFrom("users").select("id").where("id", "=", userId).forUpdate();
  const enrolled = await user.where("totp_enrolled_at", "is not", null).executeTakeFirst();
  if (!enrolled) return false;
  await tx.sql
    .insertInto("factor_removals")
    .values({ user_id: userId, due_at: null })
    .onConflict((conflict) => conflict.column("user_id").doNothing())
    .execute();
  return true;
}

export async function cancelRemoval(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("factor_removals").where("user_id", "=", userId).execute();
}

/** Condition: a removal is due, or not announced yet. */
export const removalsAreDue = (now: Date): RawBuilder<SqlBool> =>
  sql`exists (select from factor_removals where due_at is null or due_at <= ${now})`;

/** Sets the due time of unannounced removals, and returns their users; concurrent gateways receive disjoint sets. */
export async function announceRemovals(tx: Tx, dueAt: Date): Promise<string[]> {
  const unannounced = tx.sql.updateTable("factor_removals").set({ due_at: dueAt }).where("due_at", "is", null);
  return (await unannounced.returning("user_id").execute()).map(({ user_id }) => user_id);
}

/** Deletes the due removals, and returns their users. */
export async function takeDueRemovals(tx: Tx, now: Date): Promise<string[]> {
  const due = tx.sql.deleteFrom("factor_removals").where("due_at", "<=", now);
  return (await due.returning("user_id").execute()).map(({ user_id }) => user_id);
}

/** Removes the second factor of a user. Returns false if the user has no second factor. */
export async function removeFactor(tx: Tx, userId: string): Promise<boolean> {
  await tx.sql.deleteFrom("recovery_codes").where("user_id", "=", userId).execute();
  await cancelRemoval(tx, userId);
  const row = await tx.sql
    .updateTable("users")
    .set({ totp_seed: null, totp_begun_at: null, totp_enrolled_at: null, totp_counter: null })
    .where("id", "=", userId)
    .where("totp_enrolled_at", "is not", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

export async function replaceRecoveryCodes(tx: Tx, userId: string, hashes: readonly Buffer[]): Promise<void> {
  await tx.sql.deleteFrom("recovery_codes").where("user_id", "=", userId).execute();
  const rows = hashes.map((hash) => ({ user_id: userId, hash }));
  await tx.sql.insertInto("recovery_codes").values(rows).execute();
}

/** Uses up a recovery code. Returns false if no code matches; only one of several concurrent calls succeeds. */
export async function useRecoveryCode(tx: Tx, userId: string, hash: Buffer): Promise<boolean> {
  const { numDeletedRows } = await tx.sql
    .deleteFrom("recovery_codes")
    .where("user_id", "=", userId)
    .where("hash", "=", hash)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

export async function countRecoveryCodes(db: Queryable, userId: string): Promise<number> {
  const { count } = await db.sql
    .selectFrom("recovery_codes")
    .select((of) => of.fn.countAll().as("count"))
    .where("user_id", "=", userId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** Keeps the sealed seed of an enrolment that begins; false when the user has a second factor already. */
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

/** Ends an enrolment with the code of a time step; false when another has done so, or has begun anew. */
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

/** Takes the code of a time step; false when that one, or a later one, was taken. Of many at once one is. */
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

/** Removes the second factor of a user; false when there is none. */
export async function removeFactor(tx: Tx, userId: string): Promise<boolean> {
  await tx.sql.deleteFrom("recovery_codes").where("user_id", "=", userId).execute();
  const row = await tx.sql
    .updateTable("users")
    .set({ totp_seed: null, totp_begun_at: null, totp_enrolled_at: null, totp_counter: null })
    .where("id", "=", userId)
    .where("totp_enrolled_at", "is not", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Keeps the recovery codes of a user in place of those before. */
export async function replaceRecoveryCodes(tx: Tx, userId: string, hashes: readonly Buffer[]): Promise<void> {
  await tx.sql.deleteFrom("recovery_codes").where("user_id", "=", userId).execute();
  const rows = hashes.map((hash) => ({ user_id: userId, hash }));
  await tx.sql.insertInto("recovery_codes").values(rows).execute();
}

/** Uses up a recovery code; false when there is none of this hash. Of many at once one does. */
export async function useRecoveryCode(tx: Tx, userId: string, hash: Buffer): Promise<boolean> {
  const { numDeletedRows } = await tx.sql
    .deleteFrom("recovery_codes")
    .where("user_id", "=", userId)
    .where("hash", "=", hash)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/** Counts the recovery codes that a user has left. */
export async function countRecoveryCodes(db: Queryable, userId: string): Promise<number> {
  const { count } = await db.sql
    .selectFrom("recovery_codes")
    .select((of) => of.fn.countAll().as("count"))
    .where("user_id", "=", userId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

import type { Selectable } from "kysely";
import { failFields } from "../platform/errors.ts";
import type { Id } from "../platform/ids.ts";
import { isUniqueViolation, type Queryable, type Tx } from "../platform/postgres/database.ts";
import { insertMembership } from "./memberships.ts";
import { insertAccount } from "./store.ts";
import type { UsersTable } from "./tables.ts";

export type UserRow = Selectable<UsersTable>;

/** Milliseconds after which an unverified sign-up expires. */
const pendingFor = 86_400_000;

/** Canonical form of an e-mail address, for storage and comparison. */
export function canonicalEmail(email: string): string {
  return email.trim().toLowerCase();
}

const passwordNeeded = {
  password: "is required, because several sign-ups used this address: choose a new password",
};

/** Returns the time before which unverified sign-ups have expired. */
const expiryCutoff = (now: number): Date => new Date(now - pendingFor);

/** Finds a user by canonical address. Expired sign-ups are ignored. */
export async function findUserByEmail(db: Queryable, email: string, now: number): Promise<UserRow | undefined> {
  return await db.sql
    .selectFrom("users")
    .selectAll()
    .where("email", "=", email)
    .where((is) => is.or([is("email_verified_at", "is not", null), is("created_at", ">", expiryCutoff(now))]))
    .executeTakeFirst();
}

/** Finds a user by identifier. Pending sign-ups are ignored. */
export async function findUser(db: Queryable, id: string): Promise<UserRow | undefined> {
  const found = db.sql.selectFrom("users").selectAll().where("id", "=", id);
  return await found.where("email_verified_at", "is not", null).executeTakeFirst();
}

/** Finds the user of a login. Throws if the user is missing, which is a bug. */
export async function findUserOfLogin(db: Queryable, { userId }: { readonly userId: string }): Promise<UserRow> {
  const user = await findUser(db, userId);
  if (!user) throw new Error("the user of a login does not exist");
  return user;
}

/** A sign-up to insert. */
export interface NewUser {
  readonly id: Id<"usr">;
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string | null;
  readonly createdAt: Date;
  /** The account to create when the address is verified; undefined for a user who joins an existing account. */
  readonly account?: { readonly id: Id<"acc">; readonly name: string };
  /** Revision of the terms that the account accepts. */
  readonly acceptedRevision?: string | undefined;
  /** Hash of the invite to an existing account. */
  readonly inviteHash?: Buffer;
}

/** Inserts a sign-up, replacing an expired sign-up. Returns false if the address has a user or a pending sign-up. */
export async function insertUser(
  tx: Tx,
  { id, email, name, passwordHash, createdAt, account, acceptedRevision, inviteHash }: NewUser,
): Promise<boolean> {
  await tx.sql
    .deleteFrom("users")
    .where("email", "=", email)
    .where("email_verified_at", "is", null)
    .where("created_at", "<=", expiryCutoff(createdAt.getTime()))
    .execute();
  const row = await tx.sql
    .insertInto("users")
    .values({
      id,
      email,
      name,
      password_hash: passwordHash,
      created_at: createdAt,
      pending_account_id: account?.id ?? null,
      pending_account_name: account?.name ?? null,
      ...(inviteHash && { pending_invite: inviteHash }),
      ...(acceptedRevision !== undefined && { pending_revision: acceptedRevision }),
    })
    .onConflict((conflict) => conflict.column("email").doNothing())
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Marks a pending sign-up as contested: its password no longer identifies the owner of the mailbox. */
export async function contestSignUp(db: Queryable, email: string): Promise<void> {
  const update = db.sql.updateTable("users").set({ pending_contested: true }).where("email", "=", email);
  await update.where("email_verified_at", "is", null).execute();
}

export interface Verification {
  readonly membershipId: Id<"mem">;
  readonly now: Date;
  /**
   * Replaces the sign-up's password, which another person may have chosen. Null removes the password; undefined keeps
   * the password.
   */
  readonly passwordHash: string | null | undefined;
}

/** A verified user, and the account created by the verification. */
export interface VerifiedUser {
  readonly user: UserRow;
  readonly createdAccountId: string | undefined;
  /** Revision of the terms accepted for the account at sign-up. */
  readonly acceptedRevision: string | null;
  /** Hash of the invite used at sign-up, still to be accepted. */
  readonly inviteHash: Buffer | null;
}

/**
 * Verifies a user's address and creates the account of the sign-up. Changes nothing if the address is already verified.
 * Returns undefined if the user no longer exists. Throws `validation-failed` if the sign-up is contested and
 * `passwordHash` is undefined.
 */
export async function verifyUser(tx: Tx, id: string, verification: Verification): Promise<VerifiedUser | undefined> {
  const { membershipId, now, passwordHash } = verification;
  const row = await tx.sql.selectFrom("users").selectAll().where("id", "=", id).forUpdate().executeTakeFirst();
  const nothingCreated = { createdAccountId: undefined, acceptedRevision: null, inviteHash: null };
  if (!row || row.email_verified_at) return row && { user: row, ...nothingCreated };
  const { pending_account_id: accountId, pending_account_name: name, pending_invite: inviteHash } = row;
  if (row.pending_contested && passwordHash === undefined) throw failFields("validation-failed", passwordNeeded);
  if (accountId !== null) {
    await insertAccount(tx, { id: `acc_${accountId.slice("acc_".length)}`, name: name ?? row.name, tier: "free" });
    await insertMembership(tx, { id: membershipId, accountId, userId: id, role: "owner", createdAt: now });
  }
  const update = tx.sql.updateTable("users").set({
    email_verified_at: now,
    pending_account_id: null,
    pending_account_name: null,
    pending_invite: null,
    pending_revision: null,
    ...(passwordHash !== undefined && { password_hash: passwordHash }),
  });
  const user = await update.where("id", "=", id).returningAll().executeTakeFirstOrThrow();
  // If a new password replaces the password of the sign-up, the owner of the mailbox may not have accepted the terms.
  const acceptedRevision = passwordHash === undefined ? row.pending_revision : null;
  return { user, createdAccountId: accountId ?? undefined, acceptedRevision, inviteHash };
}

export async function renameUser(tx: Tx, id: string, name: string): Promise<void> {
  await tx.sql.updateTable("users").set({ name }).where("id", "=", id).execute();
}

/**
 * Changes a user's address, whose ownership must be proven already, and returns the previous row. A pending sign-up
 * with the new address is deleted. Returns undefined if the user does not exist or the address is taken. The caller
 * must then roll back the transaction.
 */
export async function changeUserEmail(tx: Tx, id: string, email: string): Promise<UserRow | undefined> {
  const user = await tx.sql.selectFrom("users").selectAll().where("id", "=", id).forUpdate().executeTakeFirst();
  if (!user) return undefined;
  await tx.sql.deleteFrom("users").where("email", "=", email).where("email_verified_at", "is", null).execute();
  try {
    await tx.sql.updateTable("users").set({ email }).where("id", "=", id).execute();
    return user;
  } catch (error) {
    if (isUniqueViolation(error)) return undefined;
    throw error;
  }
}

/** Replaces a user's password hash; null removes the password. */
export async function updatePassword(tx: Tx, id: string, passwordHash: string | null): Promise<void> {
  await tx.sql.updateTable("users").set({ password_hash: passwordHash }).where("id", "=", id).execute();
}

/** Deletes expired sign-ups. */
export async function deleteExpiredSignUps(db: Queryable, now: number): Promise<void> {
  await db.sql
    .deleteFrom("users")
    .where("email_verified_at", "is", null)
    .where("created_at", "<=", expiryCutoff(now))
    .execute();
}

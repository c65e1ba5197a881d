import type { Selectable } from "kysely";
import { failFields } from "../platform/errors.ts";
import type { Id } from "../platform/ids.ts";
import { isTaken, type Queryable, type Tx } from "../platform/postgres/database.ts";
import { insertMembership } from "./memberships.ts";
import { insertAccount } from "./store.ts";
import type { UsersTable } from "./tables.ts";

/** A user, as PostgreSQL has it. */
export type UserRow = Selectable<UsersTable>;

/** Milliseconds after which a sign-up that was not verified is forgotten. */
const pendingFor = 86_400_000;

/** Writes an e-mail address as it is kept and compared. */
export function canonicalEmail(email: string): string {
  return email.trim().toLowerCase();
}

const passwordNeeded = {
  password: "is needed, because the address was signed up with more than once: choose the one to log in with",
};

/** When the sign-ups that lapse now were made. */
const lapsedAt = (now: number): Date => new Date(now - pendingFor);

/** Finds a user by the canonical address; a sign-up that has lapsed is none. */
export async function findUserByEmail(db: Queryable, email: string, now: number): Promise<UserRow | undefined> {
  return await db.sql
    .selectFrom("users")
    .selectAll()
    .where("email", "=", email)
    .where((is) => is.or([is("email_verified_at", "is not", null), is("created_at", ">", lapsedAt(now))]))
    .executeTakeFirst();
}

/** Finds a user whose address is verified. */
export async function findUser(db: Queryable, id: string): Promise<UserRow | undefined> {
  const found = db.sql.selectFrom("users").selectAll().where("id", "=", id);
  return await found.where("email_verified_at", "is not", null).executeTakeFirst();
}

/** Finds the user of a login. */
export async function findUserOfLogin(db: Queryable, { userId }: { readonly userId: string }): Promise<UserRow> {
  const user = await findUser(db, userId);
  if (!user) throw new Error("a login outlives its user");
  return user;
}

/** Somebody who signs up. */
export interface NewUser {
  readonly id: Id<"usr">;
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string | null;
  readonly createdAt: Date;
  /** The account that is made when the address is verified; none for who joins another's. */
  readonly account?: { readonly id: Id<"acc">; readonly name: string };
  /** The revision of the terms that the account accepts. */
  readonly acceptedRevision?: string | undefined;
  /** The hash of the invite by which the user joins another's. */
  readonly inviteHash?: Buffer;
}

/** Inserts a sign-up; false when the address has a user, or one that is pending. A sign-up that has lapsed makes room. */
export async function insertUser(
  tx: Tx,
  { id, email, name, passwordHash, createdAt, account, acceptedRevision, inviteHash }: NewUser,
): Promise<boolean> {
  await tx.sql
    .deleteFrom("users")
    .where("email", "=", email)
    .where("email_verified_at", "is", null)
    .where("created_at", "<=", lapsedAt(createdAt.getTime()))
    .execute();
  const row = await tx.sql
    .insertInto("users")
    .values({
      ...{ id, email, name, password_hash: passwordHash, created_at: createdAt },
      ...{ pending_account_id: account?.id ?? null, pending_account_name: account?.name ?? null },
      ...(inviteHash && { pending_invite: inviteHash }),
      ...(acceptedRevision !== undefined && { pending_revision: acceptedRevision }),
    })
    .onConflict((conflict) => conflict.column("email").doNothing())
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Notes that an address with a pending sign-up was signed up with again: that password proves nothing any more. */
export async function contestSignUp(db: Queryable, email: string): Promise<void> {
  const update = db.sql.updateTable("users").set({ pending_contested: true }).where("email", "=", email);
  await update.where("email_verified_at", "is", null).execute();
}

/** How an address was verified, and when. */
export interface Verification {
  readonly membershipId: Id<"mem">;
  readonly now: Date;
  /** Takes the place of the sign-up's password, which somebody else may have chosen; null: there is none from now on. */
  readonly passwordHash: string | null | undefined;
}

/** A user whose address is verified, and the account that was made by it. */
export interface VerifiedUser {
  readonly user: UserRow;
  readonly madeAccountId: string | undefined;
  /** The revision of the terms that the account has accepted at its sign-up. */
  readonly acceptedRevision: string | null;
  /** The hash of the invite that the user has signed up with, and is now to join by. */
  readonly inviteHash: Buffer | null;
}

/**
 * Verifies a user's address, and makes the account of the sign-up; undefined when the user has gone. Of two who verify at
 * once one makes the account. Throws `validation-failed` where the sign-up's password would do for one that was repeated.
 */
export async function verifyUser(tx: Tx, id: string, verification: Verification): Promise<VerifiedUser | undefined> {
  const { membershipId, now, passwordHash } = verification;
  const row = await tx.sql.selectFrom("users").selectAll().where("id", "=", id).forUpdate().executeTakeFirst();
  const nothingMade = { madeAccountId: undefined, acceptedRevision: null, inviteHash: null };
  if (!row || row.email_verified_at) return row && { user: row, ...nothingMade };
  const { pending_account_id: accountId, pending_account_name: name, pending_invite: inviteHash } = row;
  if (row.pending_contested && passwordHash === undefined) throw failFields("validation-failed", passwordNeeded);
  if (accountId !== null) {
    await insertAccount(tx, { id: `acc_${accountId.slice("acc_".length)}`, name: name ?? row.name, tier: "free" });
    await insertMembership(tx, { id: membershipId, accountId, userId: id, role: "owner", createdAt: now });
  }
  const update = tx.sql.updateTable("users").set({
    ...{ email_verified_at: now, pending_account_id: null, pending_account_name: null, pending_invite: null },
    pending_revision: null,
    ...(passwordHash !== undefined && { password_hash: passwordHash }),
  });
  const user = await update.where("id", "=", id).returningAll().executeTakeFirstOrThrow();
  // If a new password replaces that of the sign-up, nobody knows whether the owner of the mailbox accepted the terms.
  const acceptedRevision = passwordHash === undefined ? row.pending_revision : null;
  return { user, madeAccountId: accountId ?? undefined, acceptedRevision, inviteHash };
}

/** Gives a user another name. */
export async function renameUser(tx: Tx, id: string, name: string): Promise<void> {
  await tx.sql.updateTable("users").set({ name }).where("id", "=", id).execute();
}

/**
 * Gives a user another address, of which it is known that the user has it; gives the user as it was, or undefined when
 * another user has the address, and the transaction can only be given up. A sign-up with it that is pending goes: it was
 * never verified.
 */
export async function moveUser(tx: Tx, id: string, email: string): Promise<UserRow | undefined> {
  const user = await tx.sql.selectFrom("users").selectAll().where("id", "=", id).forUpdate().executeTakeFirst();
  if (!user) return undefined;
  await tx.sql.deleteFrom("users").where("email", "=", email).where("email_verified_at", "is", null).execute();
  try {
    await tx.sql.updateTable("users").set({ email }).where("id", "=", id).execute();
    return user;
  } catch (error) {
    if (isTaken(error)) return undefined;
    throw error;
  }
}

/** Keeps another password of a user; null: there is none. */
export async function updatePassword(tx: Tx, id: string, passwordHash: string | null): Promise<void> {
  await tx.sql.updateTable("users").set({ password_hash: passwordHash }).where("id", "=", id).execute();
}

/** Deletes the sign-ups that have lapsed. */
export async function deleteLapsedUsers(db: Queryable, now: number): Promise<void> {
  await db.sql
    .deleteFrom("users")
    .where("email_verified_at", "is", null)
    .where("created_at", "<=", lapsedAt(now))
    .execute();
}

import { type Failure, fail } from "../platform/errors.ts";
import { randomText } from "../platform/ids.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import type { MailTokenKind } from "./tables.ts";

const minute = 60_000;

/** Milliseconds for which each kind of link is valid. */
export const validFor: Readonly<Record<MailTokenKind, number>> = {
  "verify-email": 1_440 * minute,
  "magic-link": 15 * minute,
  "password-reset": 30 * minute,
  "email-change": 1_440 * minute,
  "undo-email-change": 4_320 * minute,
  "account-restore": 10_080 * minute,
  keys: 4_320 * minute,
};

/** Characters of a token, with 5 random bits each: 200 bits. */
const tokenLength = 40;

/** The user and mailbox that a link was sent to, and what the link concerns. */
export interface MailTokenOwner {
  readonly userId: string;
  readonly email: string;
  /** The login that requested the link, if any. */
  readonly loginId?: string | null;
  /** The account that the link concerns, if any. */
  readonly accountId?: string | null;
}

/** The failure for a malformed, used or expired token; which of these applies is not disclosed. */
export const invalidMailToken = (): Failure =>
  fail("invalid-auth-token", {}, { detail: "the token is malformed, already used or expired: request another e-mail" });

/** Creates the token of a link, and stores its hash. */
export async function makeMailToken(tx: Tx, kind: MailTokenKind, owner: MailTokenOwner, now: number): Promise<string> {
  const token = randomText(tokenLength);
  const { userId: user_id, email, loginId: login_id = null, accountId: account_id = null } = owner;
  const expires_at = new Date(now + validFor[kind]);
  const row = { hash: hashSecret(token), kind, user_id, email, login_id, account_id, expires_at };
  await tx.sql.insertInto("mail_tokens").values(row).execute();
  return token;
}

/** Finds the user and address of a link without using the link up. Throws `invalid-auth-token`. */
export async function findMailToken(
  db: Queryable,
  kind: MailTokenKind,
  token: string,
  now: number,
): Promise<MailTokenOwner> {
  const row = await db.sql
    .selectFrom("mail_tokens")
    .select(["user_id as userId", "email"])
    .where("hash", "=", hashSecret(token))
    .where("kind", "=", kind)
    .where("expires_at", ">", new Date(now))
    .executeTakeFirst();
  if (!row) throw invalidMailToken();
  return row;
}

/**
 * Uses up a token; only one of several concurrent calls succeeds. The other calls do not wait for the commit, because
 * hundreds of waiting calls would hold every database connection. Throws `invalid-auth-token`.
 */
export async function useMailToken(tx: Tx, kind: MailTokenKind, token: string, now: number): Promise<MailTokenOwner> {
  const row = await tx.sql
    .deleteFrom("mail_tokens")
    .where("hash", "=", (own) =>
      own.selectFrom("mail_tokens").select("hash").where("hash", "=", hashSecret(token)).forUpdate().skipLocked(),
    )
    .where("kind", "=", kind)
    .where("expires_at", ">", new Date(now))
    .returning(["user_id as userId", "email", "login_id as loginId", "account_id as accountId"])
    .executeTakeFirst();
  if (!row) throw invalidMailToken();
  return row;
}

/** Deletes the user's address verification links. */
export async function dropVerifications(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).where("kind", "=", "verify-email").execute();
}

/** Links with which the owner of a mailbox undoes a takeover. Further changes must not invalidate these links. */
const recoveryKinds: readonly MailTokenKind[] = ["undo-email-change", "account-restore", "keys"];

/** Deletes the unused links of a user, except those of `recoveryKinds`. */
export async function dropMailTokens(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).where("kind", "not in", recoveryKinds).execute();
}

/** Deletes all unused links of a user. */
export async function dropAllMailTokens(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).execute();
}

export async function deleteExpiredMailTokens(db: Queryable, now: number): Promise<void> {
  await db.sql.deleteFrom("mail_tokens").where("expires_at", "<=", new Date(now)).execute();
}

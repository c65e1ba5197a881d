import { type Failure, fail } from "../platform/errors.ts";
import { randomText } from "../platform/ids.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import type { MailTokenKind } from "./tables.ts";

const minute = 60_000;

/** Milliseconds that each kind of link is good for. */
export const validFor: Readonly<Record<MailTokenKind, number>> = {
  "verify-email": 1_440 * minute,
  "magic-link": 15 * minute,
  "password-reset": 30 * minute,
  "email-change": 1_440 * minute,
  "undo-email-change": 4_320 * minute,
  "account-restore": 10_080 * minute,
  keys: 4_320 * minute,
};

/** 5 bits per character: 200 random bits. */
const tokenLength = 40;

/** Whose mailbox a link was sent to. */
export interface MailTokenOwner {
  readonly userId: string;
  readonly email: string;
  /** The login that has asked for it, if that was one. */
  readonly loginId?: string | null;
  /** The account that it is about, if that is one. */
  readonly accountId?: string | null;
}

/** What is wrong with a token that is malformed, used or expired: which of it, nobody is told. */
export const invalidMailToken = (): Failure =>
  fail("invalid-auth-token", {}, { detail: "the token is malformed, already used or expired: request another mail" });

/** Makes the token of a link. */
export async function makeMailToken(tx: Tx, kind: MailTokenKind, owner: MailTokenOwner, now: number): Promise<string> {
  const token = randomText(tokenLength);
  const { userId: user_id, email, loginId: login_id = null, accountId: account_id = null } = owner;
  const expires_at = new Date(now + validFor[kind]);
  const row = { hash: hashSecret(token), kind, user_id, email, login_id, account_id, expires_at };
  await tx.sql.insertInto("mail_tokens").values(row).execute();
  return token;
}

/** Finds whose link it is, without using it up. */
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
 * Uses up a token: of many who try at once one does. The others do not wait for that one's commit, in which hundreds would
 * hold every connection. Throws `invalid-auth-token`.
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

/** Ends the links of a user that verify its address. */
export async function dropVerifications(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).where("kind", "=", "verify-email").execute();
}

/** What whoever has taken a user over could else take away by any further change. */
const waysBack: readonly MailTokenKind[] = ["undo-email-change", "account-restore", "keys"];

/** Makes the links of a user that were not followed yet good for nothing, but for those that undo something. */
export async function dropMailTokens(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).where("kind", "not in", waysBack).execute();
}

/** The same, but for none. */
export async function dropAllMailTokens(tx: Tx, userId: string): Promise<void> {
  await tx.sql.deleteFrom("mail_tokens").where("user_id", "=", userId).execute();
}

/** Deletes tokens that have expired. */
export async function deleteExpiredMailTokens(db: Queryable, now: number): Promise<void> {
  await db.sql.deleteFrom("mail_tokens").where("expires_at", "<=", new Date(now)).execute();
}

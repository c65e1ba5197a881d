import { type Selectable, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { InvitesTable } from "./tables.ts";

export type InviteRow = Selectable<InvitesTable> & {
  /** Whether the sender may still invite to this role. */
  readonly is_covered: boolean;
};

export type InviteRole = InviteRow["role"];

export type InviteStatus = "pending" | "accepted" | "expired" | "revoked";

export type NewInvite = Omit<InviteRow, "created_at" | "accepted_at" | "revoked_at" | "sent_at" | "is_covered"> & {
  readonly now: Date;
};

/**
 * Selects invites, and checks whether the sender of each may still invite: keys may be revoked or expired, members may
 * have left or been demoted.
 */
const selectInvites = (db: Queryable, now: Date) =>
  db.sql.selectFrom("invites").selectAll().select(isCovered(now).as("is_covered"));

const isCovered = (now: Date) => sql<boolean>`exists (
  select from (values (1)) as one
    left join api_keys k on k.id = invites.invited_by_key
    left join memberships m
      on m.account_id = invites.account_id and m.user_id = coalesce(k.created_by, invites.invited_by)
  where (invites.invited_by_key is null or k.revoked_at is null and coalesce(k.expires_at > ${now}, k.id is not null))
    and (m.role in ('owner', 'admin') or m.role = invites.role or k.id is not null and k.created_by is null))`;

/** Returns the status of an invite at a time. An open invite is `revoked` if its sender may no longer invite. */
export function inviteStatusOf(
  { accepted_at, revoked_at, expires_at, is_covered }: InviteRow,
  now: number,
): InviteStatus {
  if (accepted_at) return "accepted";
  if (revoked_at || !is_covered) return "revoked";
  return expires_at.getTime() > now ? "pending" : "expired";
}

/** Lists the times after `since` at which an account sent invites, oldest first. */
export async function findSends(tx: Tx, accountId: string, since: Date): Promise<Date[]> {
  const { rows } = await sql<{ at: Date }>`
    select at from invites, unnest(sent_at) at where account_id = ${accountId} and at > ${since} order by at`.execute(
    tx.sql,
  );
  return rows.map(({ at }) => at);
}

/** Inserts an invite, or updates the open invite for the same address. Records the time of sending. */
export async function upsertInvite(tx: Tx, { now, ...invite }: NewInvite): Promise<InviteRow> {
  const { role, token_hash, invited_by, invited_by_key, expires_at } = invite;
  return await tx.sql
    .insertInto("invites")
    .values({ ...invite, created_at: now, sent_at: [now], accepted_at: null, revoked_at: null })
    .onConflict((conflict) =>
      conflict
        .columns(["account_id", "email"])
        .where("accepted_at", "is", null)
        .where("revoked_at", "is", null)
        .doUpdateSet({
          role,
          token_hash,
          invited_by,
          invited_by_key,
          expires_at,
          sent_at: sql<Date[]>`invites.sent_at || excluded.sent_at`,
        }),
    )
    .returningAll()
    .returning(sql<boolean>`true`.as("is_covered"))
    .executeTakeFirstOrThrow();
}

export interface InviteListQuery {
  readonly accountId: string;
  readonly status: InviteStatus | undefined;
  /** Identifier of an invite. Only older invites are listed. */
  readonly before: string | undefined;
  readonly limit: number;
  readonly now: Date;
}

/** Lists invites, newest first. */
export async function listInvites(db: Queryable, query: InviteListQuery): Promise<InviteRow[]> {
  const { accountId, status, before, now } = query;
  let select = selectInvites(db, now).where("account_id", "=", accountId);
  if (before !== undefined) select = select.where("id", "<", before);
  if (status !== undefined) select = select.where("accepted_at", status === "accepted" ? "is not" : "is", null);
  if (status !== undefined && status !== "accepted") {
    const isRevoked = sql<boolean>`(revoked_at is not null or not ${isCovered(now)})`;
    select = select.where(isRevoked, "=", status === "revoked");
  }
  if (status === "pending") select = select.where("expires_at", ">", now);
  if (status === "expired") select = select.where("expires_at", "<=", now);
  return await select.orderBy("id", "desc").limit(query.limit).execute();
}

/** Finds and locks an invite of an account. */
export async function lockInvite(
  tx: Tx,
  { id, accountId, now }: { readonly id: string; readonly accountId: string; readonly now: Date },
): Promise<InviteRow | undefined> {
  const found = selectInvites(tx, now).where("id", "=", id).where("account_id", "=", accountId);
  return await found.forUpdate("invites").executeTakeFirst();
}

export async function revokeInvite(tx: Tx, id: string, now: Date): Promise<void> {
  await tx.sql.updateTable("invites").set({ revoked_at: now }).where("id", "=", id).execute();
}

/** An invite as presented by its recipient. */
export interface ShownInvite {
  readonly tokenHash: Buffer;
  /** Canonical address of the recipient. */
  readonly email: string;
  readonly now: Date;
}

/** Finds an open invite without accepting the invite. */
export async function findOpenInvite(
  db: Queryable,
  { tokenHash, email, now }: ShownInvite,
): Promise<InviteRow | undefined> {
  const found = selectInvites(db, now).where("token_hash", "=", tokenHash).where("email", "=", email);
  const invite = await found.executeTakeFirst();
  return invite && inviteStatusOf(invite, now.getTime()) === "pending" ? invite : undefined;
}

/**
 * Marks an open invite as accepted. Only one of several concurrent calls succeeds; the other calls return undefined
 * without waiting for the commit.
 */
export async function acceptInvite(tx: Tx, { tokenHash, email, now }: ShownInvite): Promise<InviteRow | undefined> {
  return await tx.sql
    .updateTable("invites")
    .set({ accepted_at: now })
    .where("id", "=", (own) =>
      own.selectFrom("invites").select("id").where("token_hash", "=", tokenHash).forUpdate().skipLocked(),
    )
    .where("email", "=", email)
    .where("accepted_at", "is", null)
    .where("revoked_at", "is", null)
    .where("expires_at", ">", now)
    .where(isCovered(now))
    .returningAll()
    .returning(sql<boolean>`true`.as("is_covered"))
    .executeTakeFirst();
}

const revokeOpen = (tx: Tx, now: Date) =>
  tx.sql
    .updateTable("invites")
    .set({ revoked_at: now })
    .where("accepted_at", "is", null)
    .where("revoked_at", "is", null);

/** Revokes the open invites to an address that no longer belongs to its user. */
export async function revokeInvitesTo(tx: Tx, email: string, now: Date): Promise<void> {
  await revokeOpen(tx, now).where("email", "=", email).execute();
}

/** Revokes the open invites of an account. */
export async function revokeInvitesOf(tx: Tx, accountId: string, now: Date): Promise<void> {
  await revokeOpen(tx, now).where("account_id", "=", accountId).execute();
}

/** Revokes a user's open invites to the given roles, after the user lost the right to invite to these roles. */
export async function revokeInvitesBy(
  tx: Tx,
  { accountId, userId, roles, now }: { accountId: string; userId: string; roles: readonly InviteRole[]; now: Date },
): Promise<void> {
  const theirs = revokeOpen(tx, now).where("account_id", "=", accountId).where("invited_by", "=", userId);
  await theirs.where("role", "in", roles).execute();
}

import { sql } from "kysely";
import type { Role } from "../kernel/role.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** A member of an account, with data of the user. */
export interface MemberRow {
  readonly id: string;
  readonly account_id: string;
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly has_second_factor: boolean;
  readonly created_at: Date;
}

const selectMembers = (db: Queryable, accountId: string) =>
  db.sql
    .selectFrom("memberships as m")
    .innerJoin("users as u", "u.id", "m.user_id")
    .select(["m.id", "m.account_id", "m.user_id", "u.email", "u.name", "m.role", "m.created_at"])
    .select(sql<boolean>`u.totp_enrolled_at is not null`.as("has_second_factor"))
    .where("m.account_id", "=", accountId);

/** Lists members, newest first, optionally only those older than `before`. */
export async function listMembers(
  db: Queryable,
  {
    accountId,
    before,
    limit,
  }: { readonly accountId: string; readonly before: string | undefined; readonly limit: number },
): Promise<MemberRow[]> {
  const select = selectMembers(db, accountId).$if(before !== undefined, (all) => all.where("m.id", "<", before ?? ""));
  return await select.orderBy("m.id", "desc").limit(limit).execute();
}

/** Finds a member by membership, user or e-mail address. */
export async function findMember(
  db: Queryable,
  accountId: string,
  who: { readonly id: string } | { readonly userId: string } | { readonly email: string },
): Promise<MemberRow | undefined> {
  const all = selectMembers(db, accountId);
  if ("id" in who) return await all.where("m.id", "=", who.id).executeTakeFirst();
  if ("userId" in who) return await all.where("m.user_id", "=", who.userId).executeTakeFirst();
  return await all.where("u.email", "=", who.email).executeTakeFirst();
}

/** Lists all members of an account, in a stable order. */
export async function listAllMembers(db: Queryable, accountId: string): Promise<MemberRow[]> {
  return await selectMembers(db, accountId).orderBy("m.id").execute();
}

/** Counts the owners of a locked account. */
export async function countOwners(tx: Tx, accountId: string): Promise<number> {
  const { count } = await tx.sql
    .selectFrom("memberships")
    .select(sql<number>`count(*)::int`.as("count"))
    .where("account_id", "=", accountId)
    .where("role", "=", "owner")
    .executeTakeFirstOrThrow();
  return count;
}

export async function updateRole(tx: Tx, id: string, role: Role): Promise<void> {
  await tx.sql.updateTable("memberships").set({ role }).where("id", "=", id).execute();
}

export async function deleteMember(tx: Tx, id: string): Promise<void> {
  await tx.sql.deleteFrom("memberships").where("id", "=", id).execute();
}

import type { Role } from "../kernel/role.ts";
import type { Recipient } from "../mail/mail.ts";
import type { Id } from "../platform/ids.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";

export interface Membership {
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly userId: string;
  readonly role: Role;
  readonly createdAt: Date;
  readonly isDisabled: boolean;
}

function select(db: Queryable) {
  return db.sql
    .selectFrom("memberships as m")
    .innerJoin("accounts as a", "a.id", "m.account_id")
    .select((of) => [
      "m.id",
      "m.account_id as accountId",
      "a.name as accountName",
      "m.user_id as userId",
      "m.role",
      "m.created_at as createdAt",
      of("a.disabled_at", "is not", null).as("isDisabled"),
    ]);
}

/** Lists the memberships of a user, in the order of joining. */
export async function listMemberships(db: Queryable, userId: string): Promise<Membership[]> {
  const rows = await select(db).where("m.user_id", "=", userId).orderBy("m.created_at").orderBy("m.id").execute();
  return rows.map((row) => ({ ...row, isDisabled: row.isDisabled === true }));
}

/** Returns the role of a user in an account; undefined if the user is not a member. */
export async function findRole(
  db: Queryable,
  { accountId, userId }: { readonly accountId: string; readonly userId: string },
): Promise<Role | undefined> {
  const found = db.sql.selectFrom("memberships").select("role").where("account_id", "=", accountId);
  return (await found.where("user_id", "=", userId).executeTakeFirst())?.role;
}

/** Lists the owners and admins of an account, in a stable order. */
export async function listManagers(db: Queryable, accountId: string): Promise<Recipient[]> {
  return await db.sql
    .selectFrom("memberships as m")
    .innerJoin("users as u", "u.id", "m.user_id")
    .select(["u.id", "u.email", "u.name"])
    .where("m.account_id", "=", accountId)
    .where("m.role", "in", ["owner", "admin"])
    .orderBy("m.id")
    .execute();
}

/** Adds a user to an account. Returns false if the user is already a member. */
export async function insertMembership(
  tx: Tx,
  membership: Pick<Membership, "accountId" | "userId" | "role" | "createdAt"> & { readonly id: Id<"mem"> },
): Promise<boolean> {
  const { id, accountId, userId, role, createdAt } = membership;
  const row = await tx.sql
    .insertInto("memberships")
    .values({ id, role, account_id: accountId, user_id: userId, created_at: createdAt })
    .onConflict((conflict) => conflict.columns(["account_id", "user_id"]).doNothing())
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

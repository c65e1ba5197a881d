import { type Selectable, sql } from "kysely";
import type { Override } from "../../kernel/entitlement.ts";
import type { Role } from "../../kernel/role.ts";
import type { Database, NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { Schema } from "../../platform/postgres/schema.ts";

/** A token pair with the login, user and account data that authentication needs. */
export interface AccessRow {
  readonly id: string;
  readonly login_id: string;
  readonly account_id: string;
  readonly user_id: string;
  readonly email: string;
  readonly access_hash: Buffer;
  readonly access_expires_at: Date;
  readonly stepped_up_at: Date | null;
  readonly tier: string;
  readonly overrides: Override[];
  /** Null if the user is no longer a member. */
  readonly role: Role | null;
  readonly has_second_factor: boolean;
  readonly is_ended: boolean;
}

const findStatement: NamedStatement = {
  name: "login-find",
  text: `select t.id, t.login_id, t.account_id, l.user_id, u.email, t.access_hash, t.access_expires_at, t.stepped_up_at, a.tier,
      a.overrides, m.role, u.totp_enrolled_at is not null as has_second_factor,
      (l.ended_at is not null or a.disabled_at is not null or m.role is null) as is_ended
    from login_tokens t
      join logins l on l.id = t.login_id
      join users u on u.id = l.user_id
      join accounts a on a.id = t.account_id
      left join memberships m on m.account_id = t.account_id and m.user_id = l.user_id
    where t.id = any($1::text[])`,
};

/** Finds access tokens by identifier. */
export function findAccess(db: Database, ids: readonly string[]): Promise<AccessRow[]> {
  return db.named<AccessRow>(findStatement, [ids]);
}

export type NewLogin = Omit<Selectable<Schema["logins"]>, "ended_at">;

export type NewPair = Omit<Selectable<Schema["login_tokens"]>, "spent_at" | "successor_id" | "seed">;

export async function insertLogin(tx: Tx, login: NewLogin): Promise<void> {
  await tx.sql.insertInto("logins").values(login).execute();
}

export async function insertPair(tx: Tx, pair: NewPair): Promise<void> {
  await tx.sql.insertInto("login_tokens").values(pair).execute();
}

/** Finds a token pair of a login that was not ended. */
export async function findPair(db: Queryable, id: string) {
  return await db.sql
    .selectFrom("login_tokens as t")
    .innerJoin("logins as l", "l.id", "t.login_id")
    .innerJoin("users as u", "u.id", "l.user_id")
    .selectAll("t")
    .select(["l.user_id", "l.ends_at", "u.totp_enrolled_at"])
    .where("t.id", "=", id)
    .where("l.ended_at", "is", null)
    .executeTakeFirst();
}

/** Spends the refresh token of a pair. Returns undefined if the token was already spent. */
export async function spendPair(
  tx: Tx,
  id: string,
  spent: { readonly spentAt: Date; readonly successorId: string; readonly seed: Buffer },
): Promise<{ stepped_up_at: Date | null } | undefined> {
  return await tx.sql
    .updateTable("login_tokens")
    .set({ spent_at: spent.spentAt, successor_id: spent.successorId, seed: spent.seed })
    .where("id", "=", id)
    .where("spent_at", "is", null)
    .returning("stepped_up_at")
    .executeTakeFirst();
}

/** Records when the user of a token pair passed a check of the second factor. */
export async function stepUpPair(tx: Tx, id: string, at: Date): Promise<void> {
  await tx.sql.updateTable("login_tokens").set({ stepped_up_at: at }).where("id", "=", id).execute();
}

/** Records that a login was refreshed. */
export async function touchLogin(tx: Tx, id: string, at: Date): Promise<void> {
  await tx.sql.updateTable("logins").set({ last_used_at: at }).where("id", "=", id).execute();
}

/** Logins of a user to end: the login `id`, or all logins but `except`, or all logins. */
export interface LoginsToEnd {
  readonly userId: string;
  readonly id?: string;
  readonly except?: string;
}

/** Ends logins, and returns the identifiers of those that were active. */
export async function endLogins(tx: Tx, { userId, id, except }: LoginsToEnd, at: Date): Promise<string[]> {
  const rows = await tx.sql
    .updateTable("logins")
    .set({ ended_at: at })
    .where("user_id", "=", userId)
    .where("ended_at", "is", null)
    .$if(id !== undefined, (update) => update.where("id", "=", id ?? ""))
    .$if(except !== undefined, (update) => update.where("id", "!=", except ?? ""))
    .returning("id")
    .execute();
  return rows.map((row) => row.id);
}

/** Lists the active logins of a user, newest first. */
export async function listLogins(
  db: Queryable,
  query: {
    readonly userId: string;
    readonly before: string | undefined;
    readonly now: Date;
    readonly oldest: Date;
    readonly limit: number;
  },
): Promise<Selectable<Schema["logins"]>[]> {
  return await db.sql
    .selectFrom("logins")
    .selectAll()
    .where("user_id", "=", query.userId)
    .where("ended_at", "is", null)
    .where("ends_at", ">", query.now)
    .where("last_used_at", ">", query.oldest)
    .$if(query.before !== undefined, (rows) => rows.where("id", "<", query.before ?? ""))
    .orderBy("id", "desc")
    .limit(query.limit)
    .execute();
}

/** Deletes tokens that expired before `now`, and logins that were last refreshed before `oldest`. */
export async function deleteExpired(db: Queryable, { now, oldest }: { readonly now: Date; readonly oldest: Date }) {
  await db.sql.deleteFrom("login_tokens").where("refresh_expires_at", "<", now).execute();
  await db.sql.deleteFrom("logins").where("last_used_at", "<", oldest).execute();
}

/** Device of a user: the network of its address, and its browser and operating system without versions. */
export interface LoginDevice {
  readonly userId: string;
  readonly network: string;
  readonly family: string;
}

/** Records a device. Returns whether the device is the user's first, and whether the device is new for the user. */
export async function recordDevice(
  tx: Tx,
  device: LoginDevice,
  at: Date,
): Promise<{ isFirst: boolean; isNew: boolean }> {
  const { rows } = await sql<{ known: boolean; had: boolean }>`
    with before as (select network, family from devices where user_id = ${device.userId}),
      recorded as (
        insert into devices (user_id, network, family, last_login_at)
        values (${device.userId}, ${device.network}, ${device.family}, ${at})
        on conflict (user_id, network, family) do update set last_login_at = excluded.last_login_at
      )
    select exists (select from before) as had,
      exists (select from before where network = ${device.network} and family = ${device.family}) as known`.execute(
    tx.sql,
  );
  const [row] = rows;
  return { isFirst: row?.had !== true, isNew: row?.known !== true };
}

/** Returns whether a device of the user was recorded in a network since a time; false for an unknown user. */
export async function isKnownNetwork(
  db: Queryable,
  { userId, network }: { readonly userId: string | undefined; readonly network: string },
  since: Date,
): Promise<boolean> {
  const row = await db.sql
    .selectFrom("devices")
    .select("user_id")
    .where("user_id", "=", userId ?? "")
    .where("network", "=", network)
    .where("last_login_at", ">", since)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

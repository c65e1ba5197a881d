import { type Selectable, sql } from "kysely";
import type { Override } from "../../kernel/entitlement.ts";
import type { Role } from "../../kernel/role.ts";
import type { Database, NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { ApiKeysTable } from "./tables.ts";

export type ApiKeyRow = Selectable<ApiKeysTable>;

/** A key with the data of its account that authentication needs. */
export interface KeyRow
  extends Pick<ApiKeyRow, "id" | "name" | "account_id" | "secret_hash" | "scopes" | "expires_at" | "revoked_at"> {
  readonly tier: string;
  readonly overrides: Override[];
  readonly addresses: string[];
  readonly created_by: string | null;
  /** Current role of the creator in the account; null for an operator's key and if the creator has left. */
  readonly role: Role | null;
  /** Whether the account is disabled or the creator is no longer a member. */
  readonly is_orphaned: boolean;
}

export interface NewKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly scopes: readonly string[];
  readonly createdAt?: Date | undefined;
  /** Undefined for a key created by the operator. */
  readonly creator?: { readonly userId: string | null; readonly keyId: string | null };
  readonly expiresAt?: Date | null | undefined;
  readonly addresses?: readonly string[] | undefined;
}

const findStatement: NamedStatement = {
  name: "api-key-find",
  text: `select k.id, k.name, k.account_id, a.tier, a.overrides, k.secret_hash, k.scopes, k.expires_at, k.revoked_at,
      k.addresses, k.created_by, m.role,
      a.disabled_at is not null or (k.created_by is not null and m.id is null) as is_orphaned
    from api_keys k join accounts a on a.id = k.account_id
      left join memberships m on m.account_id = k.account_id and m.user_id = k.created_by
    where k.id = any($1::text[])`,
};

export function findKeys(db: Database, ids: readonly string[]): Promise<KeyRow[]> {
  return db.named<KeyRow>(findStatement, [ids]);
}

/** Inserts a key. Returns undefined if the identifier exists. */
export async function insertKey(tx: Tx, key: NewKey): Promise<ApiKeyRow | undefined> {
  return tx.sql
    .insertInto("api_keys")
    .values({
      id: key.id,
      account_id: key.accountId,
      name: key.name,
      secret_hash: key.secretHash,
      scopes: [...key.scopes],
      created_by: key.creator?.userId ?? null,
      created_by_key: key.creator?.keyId ?? null,
      expires_at: key.expiresAt ?? null,
      addresses: [...(key.addresses ?? [])],
      ...(key.createdAt && { created_at: key.createdAt }),
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returningAll()
    .executeTakeFirst();
}

const selectKey = (tx: Tx, id: string, accountId: string) =>
  tx.sql.selectFrom("api_keys").selectAll().where("id", "=", id).where("account_id", "=", accountId);

/** Finds a key of an account and locks it for update. */
export async function lockKey(tx: Tx, id: string, accountId: string): Promise<ApiKeyRow | undefined> {
  return selectKey(tx, id, accountId).forUpdate().executeTakeFirst();
}

/** Finds a key of an account with a shared lock, so that concurrent uses do not wait for each other. */
export async function lockKeyShared(tx: Tx, id: string, accountId: string): Promise<ApiKeyRow | undefined> {
  return selectKey(tx, id, accountId).forShare().executeTakeFirst();
}

/** Counts the keys of an account that are valid and not rotated. */
export async function countKeys(db: Queryable, accountId: string, now: Date): Promise<number> {
  const { count } = await db.sql
    .selectFrom("api_keys")
    .select(sql<number>`count(*)::int`.as("count"))
    .where("account_id", "=", accountId)
    .where("revoked_at", "is", null)
    .where("rotated_to", "is", null)
    .where((where) => where.or([where("expires_at", "is", null), where("expires_at", ">", now)]))
    .executeTakeFirstOrThrow();
  return count;
}

/** Key status, as filtered in lists. */
export type KeyStatus = "active" | "expiring" | "expired" | "revoked";

/** Filters and position of a list of keys. */
export interface KeyListQuery {
  readonly accountId: string;
  readonly status: KeyStatus | undefined;
  /** Identifier of a key. Only older keys are listed. */
  readonly before: string | undefined;
  readonly limit: number;
  readonly now: Date;
}

/** Lists keys, newest first. */
export async function listKeys(db: Queryable, query: KeyListQuery): Promise<ApiKeyRow[]> {
  const { status, now } = query;
  let select = db.sql.selectFrom("api_keys").selectAll().where("account_id", "=", query.accountId);
  if (query.before !== undefined) select = select.where("id", "<", query.before);
  if (status !== undefined) select = select.where("revoked_at", status === "revoked" ? "is not" : "is", null);
  if (status === "expired") select = select.where("expires_at", "<=", now);
  if (status === "active" || status === "expiring") {
    select = select
      .where((where) => where.or([where("expires_at", "is", null), where("expires_at", ">", now)]))
      .where("rotated_to", status === "active" ? "is" : "is not", null);
  }
  return select.orderBy("id", "desc").limit(query.limit).execute();
}

/** Creator of keys, in `accountId` or else in all accounts. */
export interface KeyCreatorId {
  readonly accountId?: string;
  readonly userId: string;
}

/** Locks and returns the valid keys that a user created. */
export async function lockKeysCreatedBy(tx: Tx, { accountId, userId }: KeyCreatorId, now: Date): Promise<ApiKeyRow[]> {
  return tx.sql
    .selectFrom("api_keys")
    .selectAll()
    .where("created_by", "=", userId)
    .$if(accountId !== undefined, (keys) => keys.where("account_id", "=", accountId ?? ""))
    .where("revoked_at", "is", null)
    .where((where) => where.or([where("expires_at", "is", null), where("expires_at", ">", now)]))
    .orderBy("id")
    .forUpdate()
    .execute();
}

/** Changes the creator and the scopes of a key. */
export async function transferKey(
  tx: Tx,
  id: string,
  to: { readonly createdBy: string | null; readonly scopes: readonly string[] },
): Promise<void> {
  const change = { created_by: to.createdBy, scopes: [...to.scopes] };
  await tx.sql.updateTable("api_keys").set(change).where("id", "=", id).execute();
}

/** Records the successor of a locked key, and when the old key expires. */
export async function retireKey(
  tx: Tx,
  id: string,
  to: { readonly id: string; readonly graceEnds: Date },
): Promise<void> {
  await tx.sql
    .updateTable("api_keys")
    .set({ rotated_to: to.id, expires_at: to.graceEnds })
    .where("id", "=", id)
    .execute();
}

/** Revokes a key. Returns false if the key does not exist or is already revoked. */
export async function revokeKey(tx: Tx, id: string, now: Date): Promise<boolean> {
  const row = await tx.sql
    .updateTable("api_keys")
    .set({ revoked_at: now })
    .where("id", "=", id)
    .where("revoked_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Revokes the keys that expired before a time, and returns their identifiers. */
export async function revokeExpiredKeys(db: Database, { before, now }: { before: Date; now: Date }): Promise<string[]> {
  const rows = await db.sql
    .updateTable("api_keys")
    .set({ revoked_at: now })
    .where("revoked_at", "is", null)
    .where("expires_at", "<", before)
    .returning("id")
    .execute();
  return rows.map(({ id }) => id);
}

const usedStatement: NamedStatement = {
  name: "api-keys-used",
  text: `update api_keys k set last_used_at = u.used_at
    from unnest($1::text[], $2::timestamptz[]) as u (id, used_at)
    where k.id = u.id and (k.last_used_at is null or k.last_used_at < u.used_at)`,
};

/** Writes times of use in milliseconds, by key, unless a later time is stored. */
export async function saveUses(db: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  await db.named(usedStatement, [[...uses.keys()], [...uses.values()].map((at) => new Date(at))]);
}

import { sql } from "kysely";
import type { Override } from "../accounts/entitlement.ts";
import type { Database, NamedStatement, Tx } from "../platform/postgres/database.ts";
import type { Stamp } from "../platform/postgres/schema.ts";

/** Keys of the API; of their secrets only the hash. */
interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  secret_hash: Buffer;
  scopes: string[];
  created_at: Stamp;
  expires_at: Date | null;
  revoked_at: Date | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    api_keys: ApiKeysTable;
  }
}

/** A key with what its account adds, as a request needs it. */
export interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly account_id: string;
  readonly tier: string;
  readonly overrides: Override[];
  readonly secret_hash: Buffer;
  readonly scopes: string[];
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
}

/** A key to keep. */
export interface NewKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly scopes: readonly string[];
  readonly expiresAt?: Date | undefined;
}

const findStatement: NamedStatement = {
  name: "api-key-find",
  text: `select k.id, k.name, k.account_id, a.tier, a.overrides, k.secret_hash, k.scopes, k.expires_at, k.revoked_at
    from api_keys k join accounts a on a.id = k.account_id where k.id = any($1::text[])`,
};

/** Finds keys by their identifiers. */
export function findKeys(db: Database, ids: readonly string[]): Promise<KeyRow[]> {
  return db.named<KeyRow>(findStatement, [ids]);
}

/** Inserts a key; does nothing when it is there already. */
export async function insertKey(tx: Tx, key: NewKey): Promise<void> {
  await tx.sql
    .insertInto("api_keys")
    .values({
      id: key.id,
      account_id: key.accountId,
      name: key.name,
      secret_hash: key.secretHash,
      scopes: [...key.scopes],
      expires_at: key.expiresAt ?? null,
      revoked_at: null,
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}

/** Revokes a key; false when it is not there or was revoked before. */
export async function revokeKey(tx: Tx, id: string): Promise<boolean> {
  const row = await tx.sql
    .updateTable("api_keys")
    .set({ revoked_at: sql<Date>`now()` })
    .where("id", "=", id)
    .where("revoked_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Revokes the keys that expired more than 24 hours ago. */
export async function revokeExpiredKeys(db: Database): Promise<string[]> {
  const rows = await db.sql
    .updateTable("api_keys")
    .set({ revoked_at: sql<Date>`now()` })
    .where("revoked_at", "is", null)
    .where("expires_at", "<", sql<Date>`now() - interval '24 hours'`)
    .returning("id")
    .execute();
  return rows.map(({ id }) => id);
}

import { sql } from "kysely";
import type { Database, NamedStatement } from "../platform/postgres/database.ts";

const insertStatement: NamedStatement = {
  name: "profile-chunk-insert",
  text: "insert into profile_chunks (store_id, index, data) values ($1, $2, $3)",
};

const readStatement: NamedStatement = {
  name: "profile-chunk-read",
  text: "select data from profile_chunks where store_id = $1 and index = $2",
};

const findStatement: NamedStatement = {
  name: "profile-store-find",
  text: `select s.id, s.data_key, (select count(*)::int from profile_chunks c where c.store_id = s.id) as chunks
    from profiles p join profile_stores s on s.id = p.store_id where p.id = $1 and p.version = $2`,
};

/** Store of a profile version. */
export interface FoundStore {
  readonly id: string;
  readonly data_key: Buffer;
  readonly chunks: number;
}

/** Inserts a store, which no profile refers to yet. */
export async function insertStore(
  db: Database,
  store: { id: string; profileId: string; dataKey: Buffer },
): Promise<void> {
  const { id, profileId, dataKey } = store;
  await db.sql.insertInto("profile_stores").values({ id, profile_id: profileId, data_key: dataKey }).execute();
}

export async function insertChunk(db: Database, storeId: string, index: number, data: Buffer): Promise<void> {
  await db.named(insertStatement, [storeId, index, data]);
}

/** Finds the store of a profile, if the profile still has that version. */
export async function findStore(db: Database, profileId: string, version: bigint): Promise<FoundStore | undefined> {
  const [row] = await db.named<FoundStore & { [column: string]: unknown }>(findStatement, [profileId, String(version)]);
  return row;
}

export async function readChunk(db: Database, storeId: string, index: number): Promise<Buffer> {
  const [row] = await db.named<{ data: Buffer }>(readStatement, [storeId, index]);
  if (!row) throw new Error(`the store ${storeId} has no part ${index}`);
  return row.data;
}

/** Deletes a store, unless a profile refers to the store. */
export async function deleteStore(db: Database, id: string): Promise<void> {
  await db.sql.deleteFrom("profile_stores").where("id", "=", id).where(isOrphan).execute();
}

/**
 * Deletes the stores of interrupted saves: stores older than `olderThanMs` that no profile refers to. Returns their
 * number.
 */
export async function deleteOrphans(db: Database, olderThanMs: number): Promise<number> {
  const age = sql<Date>`app_now() - ${olderThanMs} * interval '1 millisecond'`;
  const result = await db.sql
    .deleteFrom("profile_stores")
    .where("created_at", "<", age)
    .where(isOrphan)
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}

const isOrphan = sql<boolean>`not exists (select from profiles where profiles.store_id = profile_stores.id)`;

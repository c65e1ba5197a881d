import { type Selectable, type SqlBool, sql } from "kysely";
import type { Database, Queryable, Tx } from "../platform/postgres/database.ts";
import type { ProfilesTable } from "./tables.ts";

/** A profile, and the session that holds the profile, if there is one. */
export type ProfileRow = Selectable<ProfilesTable> & { readonly active_session_id: string | null };

/** Client-defined fields of a profile. */
export interface ProfileFields {
  readonly name: string;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

/** Condition: a use blocks other sessions, because its session runs or `held_until` has not passed. */
export const isHeld = sql<SqlBool>`(held_until is null or held_until > app_now())`;

const rightNow = sql<Date>`date_trunc('milliseconds', app_now())`;

const activeSession = sql<string | null>`(
  select session_id from profile_uses where profile_uses.profile_id = profiles.id and ${isHeld} limit 1
)`.as("active_session_id");

export async function countProfiles(db: Queryable, accountId: string): Promise<number> {
  const { count } = await db.sql
    .selectFrom("profiles")
    .select(sql<number>`count(*)::int`.as("count"))
    .where("account_id", "=", accountId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the stored bytes of an account's profiles, optionally without one profile. */
export async function sumStorage(db: Queryable, accountId: string, except = ""): Promise<number> {
  const { bytes } = await db.sql
    .selectFrom("profiles")
    .select(sql<string>`coalesce(sum(size_bytes), 0)`.as("bytes"))
    .where("account_id", "=", accountId)
    .where("id", "<>", except)
    .executeTakeFirstOrThrow();
  return Number(bytes);
}

/** Inserts an empty profile. */
export async function insertProfile(
  tx: Tx,
  { id, accountId, labels, ...fields }: ProfileFields & { readonly id: string; readonly accountId: string },
): Promise<ProfileRow> {
  return tx.sql
    .insertInto("profiles")
    .values({
      ...fields,
      id,
      account_id: accountId,
      labels: JSON.stringify(labels),
      created_at: rightNow,
      updated_at: rightNow,
    })
    .returningAll()
    .returning(activeSession)
    .executeTakeFirstOrThrow();
}

export async function findProfile(db: Database, id: string, accountId: string): Promise<ProfileRow | undefined> {
  return db.sql
    .selectFrom("profiles")
    .selectAll()
    .select(activeSession)
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
}

/** Locks a profile of an account against other uses, saves and deletion. */
export async function lockProfile(tx: Tx, id: string, accountId: string) {
  const locked = tx.sql.selectFrom("profiles").selectAll().where("id", "=", id).where("account_id", "=", accountId);
  return locked.forUpdate().executeTakeFirst();
}

/** Lists profiles, newest first, optionally only those older than `before`. */
export async function listProfiles(
  db: Database,
  {
    accountId,
    before,
    limit,
  }: { readonly accountId: string; readonly before: string | undefined; readonly limit: number },
): Promise<ProfileRow[]> {
  let select = db.sql.selectFrom("profiles").selectAll().select(activeSession).where("account_id", "=", accountId);
  if (before !== undefined) select = select.where("id", "<", before);
  return select.orderBy("id", "desc").limit(limit).execute();
}

/** Updates the client-defined fields of a profile. Returns undefined if the account has no such profile. */
export async function updateProfile(
  tx: Tx,
  { id, accountId }: { readonly id: string; readonly accountId: string },
  { labels, ...fields }: Partial<ProfileFields>,
): Promise<ProfileRow | undefined> {
  return tx.sql
    .updateTable("profiles")
    .set({ ...fields, ...(labels && { labels: JSON.stringify(labels) }), updated_at: rightNow })
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .returningAll()
    .returning(activeSession)
    .executeTakeFirst();
}

/** Deletes a profile and its stores. */
export async function deleteProfile(tx: Tx, id: string): Promise<void> {
  await tx.sql.deleteFrom("profiles").where("id", "=", id).execute();
}

export interface SavedProfile {
  readonly id: string;
  readonly storeId: string;
  readonly sizeBytes: number;
  readonly engine: string;
}

/** Makes a store the next version of a locked profile, and deletes the profile's other stores. */
export async function switchStore(tx: Tx, { id, storeId, sizeBytes, engine }: SavedProfile): Promise<void> {
  const next = {
    version: sql<string>`version + 1`,
    store_id: storeId,
    size_bytes: sizeBytes,
    engine,
    saved_at: rightNow,
  };
  await tx.sql.updateTable("profiles").set(next).where("id", "=", id).execute();
  await tx.sql.deleteFrom("profile_stores").where("profile_id", "=", id).where("id", "<>", storeId).execute();
}

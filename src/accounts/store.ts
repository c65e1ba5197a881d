import { type ColumnType, type Generated, type JSONColumnType, sql } from "kysely";
import type { Entitlement, Override } from "../kernel/entitlement.ts";
import type { Id } from "../platform/ids.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Stamp } from "../platform/postgres/schema.ts";
import { defaultLogLevel, type StoredLogLevel } from "./settings.ts";

/** Accounts, to which sessions, keys, webhooks and similar resources belong. */
interface AccountsTable {
  id: string;
  name: string;
  /** The effective tier. */
  tier: string;
  /** Tier set by the operator; null if it equals `tier`. */
  arranged_tier: Generated<string | null>;
  /** Whether the account is the developer account of embedded mode. */
  developer: Generated<boolean>;
  created_at: Stamp;
  /** Operator overrides of the tier's limits. Expired overrides are pruned. */
  overrides: JSONColumnType<Override[], string | undefined, string>;
  /**
   * When the operator disabled or an owner deleted the account; null if neither. While set, credentials of the account
   * are revoked, and logins are rejected.
   */
  disabled_at: Generated<Date | null>;
  /** Until when the account can be restored. Set when an owner deletes the account, which also disables it. */
  deletes_at: Generated<Date | null>;
  /** Log level of new sessions; null for the default. */
  session_logs: ColumnType<StoredLogLevel | null, undefined, StoredLogLevel>;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    accounts: AccountsTable;
  }
}

/** Returns the identifier of the developer account of embedded mode. Creates the account if there is none. */
export async function ensureDeveloperAccount(tx: Tx, id: Id<"acc">): Promise<string> {
  await tx.sql
    .insertInto("accounts")
    .values({ id, name: "Developer", tier: "enterprise", developer: true })
    .onConflict((conflict) => conflict.column("developer").where("developer", "=", true).doNothing())
    .execute();
  const row = await tx.sql.selectFrom("accounts").select("id").where("developer", "=", true).executeTakeFirstOrThrow();
  return row.id;
}

/** Returns the identifier of the developer account, which `ensureDeveloperAccount` created in embedded mode. */
export async function findDeveloperAccount(db: Queryable): Promise<string> {
  const found = db.sql.selectFrom("accounts").select("id").where("developer", "=", true);
  return (await found.executeTakeFirstOrThrow()).id;
}

/** Returns whether an account has an owner. */
export async function hasOwner(db: Queryable, accountId: string): Promise<boolean> {
  const found = db.sql.selectFrom("memberships").select("id").where("account_id", "=", accountId);
  return (await found.where("role", "=", "owner").executeTakeFirst()) !== undefined;
}

const selectEntitlement = (db: Queryable, id: string) =>
  db.sql.selectFrom("accounts").select(["tier", "overrides"]).where("id", "=", id);

export async function findEntitlement(db: Queryable, id: string): Promise<Entitlement> {
  return selectEntitlement(db, id).executeTakeFirstOrThrow();
}

/** Entitlement and disabled state of an account. */
export interface AccountState extends Entitlement {
  /** When the account was disabled, which revokes its credentials and ends its sessions. */
  readonly disabled_at: Date | null;
}

/** A locked account, with the setting that a new session needs. */
interface LockedAccount extends AccountState {
  /** Log level of new sessions. */
  readonly session_logs: StoredLogLevel;
}

/** Locks an account, so that counting its resources is serialised. */
export async function lockAccount(tx: Tx, id: string): Promise<LockedAccount> {
  const locked = selectEntitlement(tx, id).select(["disabled_at", "session_logs"]).forNoKeyUpdate();
  const { session_logs, ...account } = await locked.executeTakeFirstOrThrow();
  return { ...account, session_logs: session_logs ?? defaultLogLevel };
}

export async function insertAccount(tx: Tx, account: { id: Id<"acc">; name: string; tier: string }): Promise<void> {
  await tx.sql.insertInto("accounts").values(account).execute();
}

export interface NamedAccount extends AccountState {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
}

const selectNamed = (db: Queryable) =>
  db.sql.selectFrom("accounts").select(["id", "name", "tier", "overrides", "created_at", "disabled_at"]);

/** Returns an account. Throws if the account does not exist. */
export async function findAccount(db: Queryable, id: string): Promise<NamedAccount> {
  return selectNamed(db).where("id", "=", id).executeTakeFirstOrThrow();
}

/** Returns whether an owner has deleted the account and its data has not been erased yet. */
export async function isDeleted(db: Queryable, id: string): Promise<boolean> {
  const select = db.sql.selectFrom("accounts").select("deletes_at").where("id", "=", id);
  return (await select.executeTakeFirstOrThrow()).deletes_at !== null;
}

export async function renameAccount(tx: Tx, id: string, name: string): Promise<void> {
  await tx.sql.updateTable("accounts").set({ name }).where("id", "=", id).execute();
}

/** Finds the accounts whose identifier or name equals `name`. */
export async function findAccounts(db: Queryable, name: string): Promise<NamedAccount[]> {
  return selectNamed(db)
    .where((where) => where.or([where("id", "=", name), where("name", "=", name)]))
    .execute();
}

/** Lists all accounts, oldest first. */
export async function listAccounts(db: Queryable): Promise<NamedAccount[]> {
  return selectNamed(db).orderBy("id").execute();
}

/** Returns the tier set by the operator, independent of payments; null if it equals the effective tier. */
export async function readArrangedTier(db: Queryable, id: string): Promise<string | null> {
  const select = db.sql.selectFrom("accounts").select("arranged_tier").where("id", "=", id);
  return (await select.executeTakeFirstOrThrow()).arranged_tier;
}

/** Sets the effective tier and the arranged tier of a locked account. */
export async function setTier(tx: Tx, id: string, tier: string, arranged: string): Promise<void> {
  await tx.sql.updateTable("accounts").set({ tier, arranged_tier: arranged }).where("id", "=", id).execute();
}

/**
 * Disables an account, or enables the account if `disabledAt` is null, which also undoes a deletion. Returns false if
 * nothing changed.
 */
export async function setDisabled(tx: Tx, id: string, disabledAt: Date | null): Promise<boolean> {
  const row = await tx.sql
    .updateTable("accounts")
    .set({ disabled_at: disabledAt, deletes_at: null })
    .where("id", "=", id)
    .where("disabled_at", disabledAt ? "is" : "is not", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Replaces the operator overrides of a locked account. */
export async function setOverrides(tx: Tx, id: string, overrides: readonly Override[]): Promise<void> {
  const change = { overrides: JSON.stringify(overrides) };
  await tx.sql.updateTable("accounts").set(change).where("id", "=", id).execute();
}

/** Finds an account by identifier or name, or creates an account of that name. Returns "ambiguous" if several match. */
export async function ensureAccount(
  tx: Tx,
  account: { id: Id<"acc">; name: string; tier: string },
): Promise<{ id: string; tier: string } | "ambiguous"> {
  // Serialises concurrent calls with the same new name, so that only one account is created.
  await sql`select pg_advisory_xact_lock(hashtext(${account.name}))`.execute(tx.sql);
  const [found, ...others] = await findAccounts(tx, account.name);
  if (others.length > 0) return "ambiguous";
  if (!found) await insertAccount(tx, account);
  return found ?? account;
}

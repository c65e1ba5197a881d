import { type Generated, type JSONColumnType, sql } from "kysely";
import type { Entitlement, Override } from "../kernel/entitlement.ts";
import type { Id } from "../platform/ids.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Stamp } from "../platform/postgres/schema.ts";

/** Whom everything belongs to. */
interface AccountsTable {
  id: string;
  name: string;
  /** By which it is served. */
  tier: string;
  /** What the operator has arranged; null: `tier` is. */
  arranged_tier: Generated<string | null>;
  /** The account that embedded mode makes for itself. */
  developer: Generated<boolean>;
  created_at: Stamp;
  /** What the operator has arranged in place of the tier's limits. Of those that have expired none is kept for long. */
  overrides: JSONColumnType<Override[], string | undefined, string>;
  /** The operator has disabled it: its bearers are revoked, and nobody logs in to it. */
  disabled_at: Generated<Date | null>;
  /** An owner has deleted it, and so disabled it: from then on nobody can restore it. */
  deletes_at: Generated<Date | null>;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    accounts: AccountsTable;
  }
}

/** Finds the developer account of embedded mode, or makes it with the given identifier. */
export async function ensureDeveloperAccount(tx: Tx, id: Id<"acc">): Promise<string> {
  await tx.sql
    .insertInto("accounts")
    .values({ id, name: "Developer", tier: "enterprise", developer: true })
    .onConflict((conflict) => conflict.column("developer").where("developer", "=", true).doNothing())
    .execute();
  const row = await tx.sql.selectFrom("accounts").select("id").where("developer", "=", true).executeTakeFirstOrThrow();
  return row.id;
}

const selectEntitlement = (db: Queryable, id: string) =>
  db.sql.selectFrom("accounts").select(["tier", "overrides"]).where("id", "=", id);

/** Tells what an account is entitled to now. */
export async function findEntitlement(db: Queryable, id: string): Promise<Entitlement> {
  return selectEntitlement(db, id).executeTakeFirstOrThrow();
}

/** What an account is entitled to, unless it is disabled. */
export interface AccountState extends Entitlement {
  /** Since when its bearers are revoked, and nothing runs in it. */
  readonly disabled_at: Date | null;
}

/** Locks an account against others who would count what it has, and tells what it is entitled to now. */
export async function lockAccount(tx: Tx, id: string): Promise<AccountState> {
  return selectEntitlement(tx, id).select("disabled_at").forNoKeyUpdate().executeTakeFirstOrThrow();
}

/** Makes an account. */
export async function insertAccount(tx: Tx, account: { id: Id<"acc">; name: string; tier: string }): Promise<void> {
  await tx.sql.insertInto("accounts").values(account).execute();
}

/** An account as operators name and see it. */
export interface NamedAccount extends AccountState {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
}

const selectNamed = (db: Queryable) =>
  db.sql.selectFrom("accounts").select(["id", "name", "tier", "overrides", "created_at", "disabled_at"]);

/** Finds an account that is there. */
export async function findAccount(db: Queryable, id: string): Promise<NamedAccount> {
  return selectNamed(db).where("id", "=", id).executeTakeFirstOrThrow();
}

/** Says whether an owner has deleted an account. */
export async function isDeleted(db: Queryable, id: string): Promise<boolean> {
  const select = db.sql.selectFrom("accounts").select("deletes_at").where("id", "=", id);
  return (await select.executeTakeFirstOrThrow()).deletes_at !== null;
}

/** Gives an account another name. */
export async function renameAccount(tx: Tx, id: string, name: string): Promise<void> {
  await tx.sql.updateTable("accounts").set({ name }).where("id", "=", id).execute();
}

/** Finds the accounts that have this identifier or this name. */
export async function findAccounts(db: Queryable, name: string): Promise<NamedAccount[]> {
  return selectNamed(db)
    .where((where) => where.or([where("id", "=", name), where("name", "=", name)]))
    .execute();
}

/** Lists all accounts, the oldest first. */
export async function listAccounts(db: Queryable): Promise<NamedAccount[]> {
  return selectNamed(db).orderBy("id").execute();
}

/** Reads what the operator has arranged for an account beside what is paid for; null: what it is served by. */
export async function readArrangedTier(db: Queryable, id: string): Promise<string | null> {
  const select = db.sql.selectFrom("accounts").select("arranged_tier").where("id", "=", id);
  return (await select.executeTakeFirstOrThrow()).arranged_tier;
}

/** Sets what an account, which is locked, is served by, and what the operator has arranged of that. */
export async function setTier(tx: Tx, id: string, tier: string, arranged: string): Promise<void> {
  await tx.sql.updateTable("accounts").set({ tier, arranged_tier: arranged }).where("id", "=", id).execute();
}

/** Disables an account, or enables it again, also one that its owner has deleted; false when it is so already. */
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

/** Sets what the operator has arranged for an account, which is locked. */
export async function setOverrides(tx: Tx, id: string, overrides: readonly Override[]): Promise<void> {
  const change = { overrides: JSON.stringify(overrides) };
  await tx.sql.updateTable("accounts").set(change).where("id", "=", id).execute();
}

/** Finds an account by its identifier or its name, or makes one of that name; "ambiguous" when several bear it. */
export async function ensureAccount(
  tx: Tx,
  account: { id: Id<"acc">; name: string; tier: string },
): Promise<{ id: string; tier: string } | "ambiguous"> {
  // Two who ask for the same new name at once get the same account.
  await sql`select pg_advisory_xact_lock(hashtext(${account.name}))`.execute(tx.sql);
  const [found, ...others] = await findAccounts(tx, account.name);
  if (others.length > 0) return "ambiguous";
  if (!found) await insertAccount(tx, account);
  return found ?? account;
}

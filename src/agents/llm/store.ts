import type { Insertable, Selectable } from "kysely";
import type { Month } from "../../limits/month.ts";
import type { NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { Schema } from "../../platform/postgres/schema.ts";
import type { LlmKeysTable } from "./tables.ts";

export type LlmKeyRow = Selectable<LlmKeysTable>;

/** Prepared, because it runs before each model call with a key of the account. */
const findStatement: NamedStatement = {
  name: "llm-key-find",
  text: `select account_id, provider, api_key, key_suffix, base_url, model, vision, created_at, tested_at, test_ok, last_used_at
    from llm_keys where account_id = $1`,
};

export async function findLlmKey(db: Queryable, accountId: string): Promise<LlmKeyRow | undefined> {
  return (await db.named<LlmKeyRow>(findStatement, [accountId]))[0];
}

/** Stores the LLM key of an account, replacing an earlier key. */
export async function putLlmKey(tx: Tx, key: Insertable<LlmKeysTable>): Promise<LlmKeyRow> {
  return tx.sql
    .insertInto("llm_keys")
    .values(key)
    .onConflict((conflict) => conflict.column("account_id").doUpdateSet(key))
    .returningAll()
    .executeTakeFirstOrThrow();
}

export function deleteLlmKey(tx: Tx, accountId: string): Promise<LlmKeyRow | undefined> {
  return tx.sql.deleteFrom("llm_keys").where("account_id", "=", accountId).returningAll().executeTakeFirst();
}

/** Records a test result, unless the key was replaced meanwhile. */
export async function recordKeyTest(db: Queryable, key: LlmKeyRow, at: Date, ok: boolean): Promise<void> {
  const same = db.sql.updateTable("llm_keys").where("account_id", "=", key.account_id);
  await same.where("created_at", "=", key.created_at).set({ tested_at: at, test_ok: ok }).execute();
}

/** Records a use of the account's key. The commit waits for the statement. */
export function recordKeyUse(tx: Tx, accountId: string, at: Date): void {
  tx.send(tx.sql.updateTable("llm_keys").set({ last_used_at: at }).where("account_id", "=", accountId));
}

export type LlmSettings = Omit<Selectable<Schema["llm_settings"]>, "account_id">;

const defaultSettings: LlmSettings = { consent: false, monthly_cap_cents: null, consented_at: null, updated_at: null };

/** Reads the bundled LLM settings of an account, or the defaults. */
export async function readSettings(db: Queryable, accountId: string): Promise<LlmSettings> {
  const row = db.sql.selectFrom("llm_settings").selectAll().where("account_id", "=", accountId);
  return (await row.executeTakeFirst()) ?? defaultSettings;
}

/** Writes the given settings. If the account has no row yet, the other settings get their defaults. */
export async function writeSettings(tx: Tx, accountId: string, changes: Partial<LlmSettings>): Promise<LlmSettings> {
  return tx.sql
    .insertInto("llm_settings")
    .values({ ...defaultSettings, ...changes, account_id: accountId })
    .onConflict((conflict) => conflict.column("account_id").doUpdateSet(changes))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Reads the bundled LLM cost of an account in a month, in millionths of a US dollar. */
export async function readSpending(db: Queryable, accountId: string, month: Month): Promise<number> {
  const row = await db.sql
    .selectFrom("llm_spending")
    .select("spent")
    .where("account_id", "=", accountId)
    .where("month", "=", `${month.name}-01`)
    .executeTakeFirst();
  return Number(row?.spent ?? 0);
}

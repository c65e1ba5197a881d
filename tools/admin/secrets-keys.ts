import { sql } from "kysely";
import type { Database } from "../../src/platform/postgres/database.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { asOperator } from "./operator.ts";

/** Columns with sealed secrets. A test compares them with the schema. */
export const sealedColumns: readonly (readonly [table: string, column: string])[] = [
  ["agent_messages", "sealed"],
  ["agent_sessions", "variables"],
  ["agent_summaries", "sealed"],
  ["agent_turns", "recipe_plan"],
  ["idempotency_keys", "answer"],
  ["idempotency_keys", "failure"],
  ["llm_keys", "api_key"],
  ["mails", "content"],
  ["profile_stores", "data_key"],
  ["session_logs", "data"],
  ["status_subscribers", "end_token"],
  ["users", "totp_seed"],
  ["webhook_endpoints", "prev_secret"],
  ["webhook_endpoints", "secret"],
];

/** Number of secrets that a key has encrypted in a column. */
interface KeyUse {
  readonly key: string;
  readonly table: string;
  readonly column: string;
  readonly secrets: number;
}

/** Counts the stored secrets by the key that encrypted them. Reads all of them. */
async function countKeyUses(db: Database): Promise<KeyUse[]> {
  const uses: KeyUse[] = [];
  for (const [table, column] of sealedColumns) {
    // A sealed secret starts with its format, the length of the key's id, and the id.
    const id = sql`convert_from(substring(${sql.ref(column)} from 3 for get_byte(${sql.ref(column)}, 1)), 'UTF8')`;
    const { rows } = await sql<{ key: string; secrets: string }>`
      select ${id} as key, count(*) as secrets from ${sql.table(table)}
      where ${sql.ref(column)} is not null group by 1 order by 1`.execute(db.sql);
    for (const { key, secrets } of rows) uses.push({ key, table, column, secrets: Number(secrets) });
  }
  return uses;
}

/** Removes a key from the known ones, so that its absence is no longer logged. Returns whether it was known. */
async function forgetKey(db: Database, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.sql.deleteFrom("secrets_keys").where("id", "=", id).executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

export const secretsKeys: AdminCommand = {
  help: `secrets-keys [--forget <id>]

  counts the stored secrets by the key of SECRETS_KEYS that encrypted them, a line of JSON for each key and
  column; reads all secrets, but needs no keys

  --forget <id>   accepts that a key is missing: gateways no longer log it at their start`,
  options: ["forget"],
  run: ({ forget }, env) =>
    asOperator(env, async ({ db }) => {
      if (forget === undefined) return (await countKeyUses(db)).map((use) => JSON.stringify(use)).join("\n");
      if (await forgetKey(db, forget)) return `The key ${forget} is no longer expected in SECRETS_KEYS.`;
      throw new StartRefused(`--forget accepts the id of a key that gateways have used, not ${forget}`);
    }),
};

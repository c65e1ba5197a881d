import { sql } from "kysely";
import type { Database, Queryable, Tx } from "../platform/postgres/database.ts";

/** Disables an account and sets its deletion time. Returns false if the account is already closed or disabled. */
export async function closeAccount(tx: Tx, id: string, at: { now: Date; deletesAt: Date }): Promise<boolean> {
  const row = await tx.sql
    .updateTable("accounts")
    .set({ disabled_at: at.now, deletes_at: at.deletesAt })
    .where("id", "=", id)
    .where("disabled_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Reopens a closed account within its grace period. Returns false for any other account. */
export async function reopenAccount(tx: Tx, id: string, now: Date): Promise<boolean> {
  const row = await tx.sql
    .updateTable("accounts")
    .set({ disabled_at: null, deletes_at: null })
    .where("id", "=", id)
    .where("deletes_at", ">", now)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Lists up to `limit` accounts whose grace period ended at `now` or before. */
export async function findDueDeletions(db: Queryable, now: Date, limit: number): Promise<string[]> {
  const due = db.sql.selectFrom("accounts").select("id").where("deletes_at", "<=", now);
  return (await due.orderBy("deletes_at").limit(limit).execute()).map(({ id }) => id);
}

/**
 * Rows of an account in deletion order, referring tables first. Batch sizes keep each statement far below its time
 * limit, including cascades such as the data of profiles.
 */
const accountRows: readonly { rows: string; batch: number; key?: string }[] = [
  { rows: "profiles where", batch: 20 },
  // A ctid does not identify a row of a partitioned table.
  { rows: "session_logs where", batch: 1_000, key: "session_id, stored_on" },
  { rows: "session_log_usage where", batch: 1_000 },
  { rows: "sessions where", batch: 1_000 },
  // The condition allows use of the index. Only events of the last seconds have no number yet.
  { rows: "events where number is not null and", batch: 1_000 },
  { rows: "idempotency_keys where", batch: 1_000 },
  { rows: "api_keys where", batch: 1_000 },
  { rows: "audit_entries where", batch: 1_000 },
  { rows: "webhook_endpoints where", batch: 1_000 },
  { rows: "webhook_deliveries where", batch: 1_000 },
  { rows: "recipes where", batch: 100 },
  { rows: "llm_keys where", batch: 1_000 },
  { rows: "llm_settings where", batch: 1_000 },
  { rows: "invites where", batch: 1_000 },
  { rows: "terms_acceptances where", batch: 1_000 },
];

/** Deletes the rows of an account in batches. */
export async function deleteAccountRows(db: Database, accountId: string): Promise<void> {
  for (const { rows, batch, key } of accountRows) {
    const [table = ""] = rows.split(" ");
    const some = sql`select ${sql.raw(key ?? "ctid")} from ${sql.raw(rows)} account_id = ${accountId} limit ${batch}`;
    const isChosen = key === undefined ? sql`ctid = any(array(${some}))` : sql`(${sql.raw(key)}) in (${some})`;
    const deletion = sql`delete from ${sql.table(table)} where ${isChosen}`;
    while ((await deletion.execute(db.sql)).numAffectedRows === BigInt(batch));
  }
}

/**
 * Removes all members of an account, and deletes those users who are in no other account, with their e-mails.
 * Anonymizes the account, whose row stays because usage and payments refer to the row.
 */
export async function anonymizeAccount(tx: Tx, accountId: string): Promise<void> {
  const left = tx.sql.deleteFrom("memberships").where("account_id", "=", accountId).returning("user_id");
  const users = (await left.execute()).map(({ user_id }) => user_id);
  if (users.length > 0) {
    const { rows } = await sql<{ id: string }>`
      delete from users where id = any(${users}) and not exists (select from memberships where user_id = users.id)
      returning id`.execute(tx.sql);
    const gone = rows.map(({ id }) => id);
    await sql`delete from mails where user_id = any(${gone})`.execute(tx.sql);
  }
  const blank = { name: "a deleted account", overrides: "[]", deletes_at: null };
  await tx.sql.updateTable("accounts").set(blank).where("id", "=", accountId).execute();
}

import { sql } from "kysely";
import type { Database, Queryable, Tx } from "../platform/postgres/database.ts";

/** Closes an account until it is restored or deleted; false when it is closed already. */
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

/** Opens an account again whose week is not over; false for every other one. */
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

/** Lists accounts whose week is over. */
export async function findDueDeletions(db: Queryable, now: Date, limit: number): Promise<string[]> {
  const due = db.sql.selectFrom("accounts").select("id").where("deletes_at", "<=", now);
  return (await due.orderBy("deletes_at").limit(limit).execute()).map(({ id }) => id);
}

/**
 * What belongs to an account, in an order in which nothing is left that refers to it, and how many rows one statement deletes
 * at most, so that it takes a fraction of its time limit: what a profile holds goes with it.
 */
const belongings = [
  { rows: "profiles where", batch: 20 },
  { rows: "sessions where", batch: 1_000 },
  // As its index has them: all but the last seconds' have their number.
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

/** Deletes what belongs to an account, some rows at a time. */
export async function deleteBelongings(db: Database, accountId: string): Promise<void> {
  for (const { rows, batch } of belongings) {
    const [table = ""] = rows.split(" ");
    const some = sql`select ctid from ${sql.raw(rows)} account_id = ${accountId} limit ${batch}`;
    const deletion = sql`delete from ${sql.table(table)} where ctid = any(array(${some}))`;
    while ((await deletion.execute(db.sql)).numAffectedRows === BigInt(batch));
  }
}

/**
 * Deletes the users of an account who belong to no other, with their mails, and what says whose it was. The row stays: what
 * the account has used and paid refers to it.
 */
export async function deletePeople(tx: Tx, accountId: string): Promise<void> {
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

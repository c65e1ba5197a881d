import "./tables.ts";
import type { AuditRecord } from "../call.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** Inserts an entry, at the latest with the commit. */
export function insertEntry(tx: Tx, id: string, entry: AuditRecord): void {
  const { actor } = entry;
  const insertion = tx.sql.insertInto("audit_entries").values({
    id,
    account_id: entry.accountId,
    action: entry.action,
    actor_kind: actor.kind,
    actor_id: "id" in actor ? actor.id : null,
    actor_name: "name" in actor ? actor.name : null,
    subject: entry.subject,
    data: JSON.stringify(entry.data ?? {}),
    request_id: entry.requestId ?? null,
    client_address: entry.clientAddress ?? null,
    user_agent: entry.userAgent ?? null,
  });
  tx.send(insertion);
}

/** Deletes an entry. */
export async function deleteEntry(db: Queryable, id: string): Promise<void> {
  await db.sql.deleteFrom("audit_entries").where("id", "=", id).execute();
}

/** Deletes entries that are older than an identifier, the oldest and so many at most; says how many those were. */
export async function deleteEntriesBefore(db: Queryable, id: string, limit: number): Promise<number> {
  const oldest = db.sql.selectFrom("audit_entries").select("id").where("id", "<", id).orderBy("id").limit(limit);
  const { numDeletedRows } = await db.sql
    .deleteFrom("audit_entries")
    .where("id", "in", oldest)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

import type { Selectable } from "kysely";
import type { AuditRecord } from "../kernel/call.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { AuditEntriesTable } from "./tables.ts";

export type AuditRow = Selectable<AuditEntriesTable>;

/** Maximum number of User-Agent characters to store. */
const longestUserAgent = 300;

/** Inserts an entry. The statement is sent no later than the commit. */
export function insertEntry(tx: Tx, id: string, entry: AuditRecord): void {
  const { actor, call } = entry;
  const insertion = tx.sql.insertInto("audit_entries").values({
    id,
    account_id: entry.accountId,
    action: entry.action,
    actor_kind: actor.kind,
    actor_id: "id" in actor ? actor.id : null,
    actor_name: "name" in actor ? actor.name : null,
    subject: entry.subject,
    data: JSON.stringify(entry.data ?? {}),
    request_id: call?.requestId ?? null,
    client_address: call?.clientAddress ?? null,
    user_agent: call?.header("user-agent")?.slice(0, longestUserAgent) ?? null,
  });
  tx.send(insertion);
}

export async function deleteEntry(db: Queryable, id: string): Promise<void> {
  await db.sql.deleteFrom("audit_entries").where("id", "=", id).execute();
}

/** Deletes the oldest entries before an identifier, at most `limit`. Returns the number of deleted entries. */
export async function deleteEntriesBefore(db: Queryable, id: string, limit: number): Promise<number> {
  const oldest = db.sql.selectFrom("audit_entries").select("id").where("id", "<", id).orderBy("id").limit(limit);
  const { numDeletedRows } = await db.sql
    .deleteFrom("audit_entries")
    .where("id", "in", oldest)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

/** Filter of an account's entries. The time range is given by identifiers. */
export interface EntryFilter {
  readonly accountId: string;
  readonly action?: string;
  readonly actorId?: string;
  readonly subject?: string;
  /** Lowest identifier to include. */
  readonly from?: string;
  /** Lowest identifier to exclude. */
  readonly before?: string;
}

function select(db: Queryable, { accountId, action, actorId, subject, from, before }: EntryFilter) {
  let matching = db.sql.selectFrom("audit_entries").where("account_id", "=", accountId);
  if (action !== undefined) matching = matching.where("action", "=", action);
  if (actorId !== undefined) matching = matching.where("actor_id", "=", actorId);
  if (subject !== undefined) matching = matching.where("subject", "=", subject);
  if (from !== undefined) matching = matching.where("id", ">=", from);
  if (before !== undefined) matching = matching.where("id", "<", before);
  return matching;
}

/** Lists entries before `cursor`, newest first. */
export async function listEntries(
  db: Queryable,
  filter: EntryFilter,
  { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
): Promise<AuditRow[]> {
  const matching = select(db, filter);
  const older = cursor === undefined ? matching : matching.where("id", "<", cursor);
  return older.selectAll().orderBy("id", "desc").limit(limit).execute();
}

/** Reads up to `limit` entries after `after`, up to and including `last`, oldest first. */
export async function readAuditEntries(
  db: Queryable,
  filter: EntryFilter,
  { after, last, limit }: { readonly after: string; readonly last: string; readonly limit: number },
): Promise<AuditRow[]> {
  const between = select(db, filter).where("id", ">", after).where("id", "<=", last);
  return between.selectAll().orderBy("id").limit(limit).execute();
}

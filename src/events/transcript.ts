import { create, fromJson, type JsonValue, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import {
  AgentSessionTranscriptEntryAddedEventSchema,
  type TranscriptEntry,
  TranscriptEntrySchema,
} from "../gen/pilothouse/v1/agent_turn_pb.ts";
import type { Database, Queryable, Tx } from "../platform/postgres/database.ts";
import type { EventLog } from "./event-log.ts";

/** Owner of a transcript, and the session whose event stream reports new entries. */
export interface TranscriptOwner {
  readonly accountId: string;
  readonly sessionId: string;
  readonly agentSessionId: string;
}

export type NewEntry = Pick<
  MessageInitShape<typeof TranscriptEntrySchema>,
  "id" | "turnId" | "role" | "content" | "tokens" | "costCents"
> & {
  readonly id: string;
};

/** Adds an entry to a transcript, with its event. */
export async function addEntry(
  tx: Tx,
  events: EventLog,
  { accountId, sessionId, agentSessionId }: TranscriptOwner,
  { id, ...fields }: NewEntry,
  at: Date,
): Promise<void> {
  const entry = create(TranscriptEntrySchema, { id, ...fields, createdAt: timestampFromDate(at) });
  const row = {
    id,
    agent_session_id: agentSessionId,
    turn_id: fields.turnId ?? null,
    created_at: at,
    entry: JSON.stringify(toJson(TranscriptEntrySchema, entry)),
  };
  tx.send(tx.sql.insertInto("transcript_entries").values(row));
  const event = create(AgentSessionTranscriptEntryAddedEventSchema, { agentSessionId, entry });
  await events.append(tx, { accountId, subject: sessionId }, AgentSessionTranscriptEntryAddedEventSchema, event);
}

/** Reads entries after another entry, oldest first. */
export async function readTranscriptEntries(
  db: Queryable,
  query: { readonly agentSessionId: string; readonly after: string | undefined; readonly limit: number },
): Promise<TranscriptEntry[]> {
  const { agentSessionId, after, limit } = query;
  let rows = db.sql.selectFrom("transcript_entries").select("entry").where("agent_session_id", "=", agentSessionId);
  if (after !== undefined) {
    // Retention deletes the oldest entries first, so all entries are after a deleted one.
    const position = sql<string>`coalesce((select position from transcript_entries where id = ${after}), 0)`;
    rows = rows.where("position", ">", position);
  }
  const found = await rows.orderBy("position").limit(limit).execute();
  // JSON was written by `addEntry`.
  return found.map(({ entry }) => fromJson(TranscriptEntrySchema, entry as JsonValue, { ignoreUnknownFields: true }));
}

/** Deletes up to `limit` entries older than `before`. Returns their number. */
export async function deleteOldEntries(db: Database, before: Date, limit: number): Promise<number> {
  const old = sql`select id from transcript_entries where created_at < ${before} limit ${limit}`;
  const { numAffectedRows } = await sql`delete from transcript_entries where id = any(array(${old}))`.execute(db.sql);
  return Number(numAffectedRows);
}

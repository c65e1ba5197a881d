import type { Generated, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Messages and actions of agent sessions. */
interface TranscriptEntriesTable {
  /**
   * Follows commit order within an agent session, because transactions that add entries lock the row of the agent
   * session or of the turn.
   */
  position: Generated<string>;
  id: string;
  agent_session_id: string;
  turn_id: string | null;
  /** Entry in protobuf JSON. */
  entry: JSONColumnType<object>;
  created_at: Stamp;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    transcript_entries: TranscriptEntriesTable;
  }
}

export const transcriptMigrations: Migrations = {
  "030-transcripts": [
    `create table transcript_entries (
      position bigint generated always as identity primary key,
      id text not null unique,
      agent_session_id text not null references agent_sessions (id) on delete cascade,
      turn_id text,
      entry jsonb not null,
      created_at timestamptz not null
    )`,
    "create index transcript_entries_session on transcript_entries (agent_session_id, position)",
    "create index transcript_entries_age on transcript_entries (created_at)",
  ],
};

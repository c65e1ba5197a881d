import type { ColumnType, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Whether a person may take control. */
export type StoredAgentMode = "pair" | "agent";

/** Agent sessions. One whose browser session has ended has ended with it. */
export interface AgentSessionsTable {
  id: string;
  account_id: string;
  session_id: string;
  /** The browser session was made for it, and ends with it. */
  owns_session: boolean;
  mode: StoredAgentMode;
  instructions: string | null;
  model: string | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  created_at: Stamp;
  /** When it ended before its browser session. */
  ended_at: ColumnType<Date | null, undefined, Date>;
}

export const agentSessionMigrations: Migrations = {
  "058-agent-sessions": [
    `create table agent_sessions (
      id text primary key,
      account_id text not null references accounts (id),
      session_id text not null references sessions (id) on delete cascade,
      owns_session boolean not null,
      mode text not null,
      instructions text,
      model text,
      labels jsonb not null,
      created_at timestamptz not null default now(),
      ended_at timestamptz
    )`,
    "create index agent_sessions_account on agent_sessions (account_id, id desc)",
    "create index agent_sessions_session on agent_sessions (session_id)",
  ],
};

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    agent_sessions: AgentSessionsTable;
  }
}

import type { ColumnType, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** Whether a person may take control (`pair`) or not (`agent`). */
export type StoredAgentMode = "pair" | "agent";

export interface StoredTurnLimits {
  readonly steps: number;
  readonly seconds: number;
  readonly tokens: number;
  /** US cents. */
  readonly costCents?: number;
}

/** Agent sessions. An agent session ends with its browser session at the latest. */
export interface AgentSessionsTable {
  id: string;
  account_id: string;
  session_id: string;
  /** Whether the browser session was created for the agent session, and ends with it. */
  owns_session: boolean;
  mode: StoredAgentMode;
  instructions: string | null;
  model: string | null;
  /** The recipe that the first turn runs; may have been deleted since. */
  recipe_id: string | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  /** Limits per turn that the creation request set. */
  limits: JSONColumnType<Partial<StoredTurnLimits>, string | null, string> | null;
  /** The only hosts that the browser may reach; empty allows all. */
  allowed_domains: JSONColumnType<string[], string, string>;
  /** Names of the secrets in `variables`; kept after the agent session has ended. */
  variable_names: JSONColumnType<string[], string, string>;
  /** Encrypted secrets that turns may type, deleted when the agent session ends. */
  variables: ColumnType<Buffer | null, Buffer | null, null>;
  created_at: Stamp;
  /** Set if the agent session ended before its browser session. */
  ended_at: ColumnType<Date | null, undefined, Date>;
}

export const agentSessionMigrations: Migrations = {
  "028-agent-sessions": [
    `create table agent_sessions (
      id text primary key,
      account_id text not null references accounts (id),
      session_id text not null references sessions (id) on delete cascade,
      owns_session boolean not null,
      mode text not null,
      instructions text,
      model text,
      recipe_id text,
      labels jsonb not null,
      limits jsonb,
      allowed_domains jsonb not null default '[]',
      variable_names jsonb not null default '[]',
      variables bytea,
      created_at timestamptz not null default app_now(),
      ended_at timestamptz
    )`,
    "create index agent_sessions_account on agent_sessions (account_id, id desc)",
    "create index agent_sessions_session on agent_sessions (session_id)",
    "create index agent_sessions_variables on agent_sessions (id) where variables is not null",
  ],
};

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    agent_sessions: AgentSessionsTable;
  }
}

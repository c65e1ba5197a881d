import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";
import type { StoredEndedReason, StoredSessionStatus } from "./session-states.ts";

/** Browser sessions, both running and ended. */
export interface SessionsTable {
  id: string;
  account_id: string;
  status: StoredSessionStatus;
  archetype: string;
  runtime: string;
  profile_id: string | null;
  proxy_server: string | null;
  proxy_username: string | null;
  locale: string | null;
  timezone: string | null;
  viewport_width: number | null;
  viewport_height: number | null;
  viewport_scale: number | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  idle_timeout_seconds: number;
  created_at: Stamp;
  live_at: Date | null;
  ended_at: Date | null;
  ended_reason: StoredEndedReason | null;
  pause_reason: string | null;
  expires_at: Date;
  /** When a row that is still provisioning is swept. */
  provision_by: Date;
  worker_id: string;
  placement_epoch: BigInteger;
  control_epoch: ColumnType<string, bigint | number | string | undefined, bigint | number | string>;
  /** Client that holds control; null if there is none. */
  control_holder: ColumnType<string | null, undefined, string | null>;
  /** When control expires. */
  control_lapses_at: ColumnType<Date | null, undefined, Date | null>;
  /** When the control holder took control or last sent input. */
  control_input_at: ColumnType<Date | null, undefined, Date | null>;
  /** The agent session that drives the session. */
  agent_session_id: ColumnType<string | null, undefined, string | null>;
  /** Tier of the account at creation; its limits apply to the session. Null in rows of earlier releases. */
  tier: ColumnType<string | null, string, never>;
  /** Whether a slot of the worker is taken: from placement until the worker no longer has the session. */
  slot_held: Generated<boolean>;
}

/** Tokens with which CDP clients connect to sessions. */
interface CdpTokensTable {
  id: string;
  session_id: string;
  made_by: string;
  secret_hash: Buffer;
  created_at: Stamp;
  opens_until: Date;
  revoked_at: Date | null;
}

export const sessionMigrations: Migrations = {
  "011-session-expiry": [
    `create index sessions_expiry on sessions (expires_at) where status in ('provisioning', 'live', 'paused')`,
  ],
  "013-cdp-tokens": [
    `create table cdp_tokens (
      id text primary key,
      session_id text not null references sessions (id) on delete cascade,
      made_by text not null,
      secret_hash bytea not null,
      created_at timestamptz not null default now(),
      opens_until timestamptz not null,
      revoked_at timestamptz
    )`,
    "create index cdp_tokens_session on cdp_tokens (session_id)",
  ],
  "023-session-tiers": ["alter table sessions add column tier text"],
  "057-session-control": [
    `alter table sessions
      add column control_holder text,
      add column control_lapses_at timestamptz,
      add column control_input_at timestamptz,
      add column agent_session_id text`,
    `create index sessions_control on sessions (control_lapses_at)
      where control_holder is not null and status in ('live', 'paused')`,
  ],
};

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    sessions: SessionsTable;
    cdp_tokens: CdpTokensTable;
  }
}

import type { JsonObject } from "@bufbuild/protobuf";
import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { StoredLogLevel } from "../accounts/settings.ts";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";
import type { StoredEndedReason, StoredSessionStatus } from "./session-states.ts";

/** Further options of a session. Absent options have their defaults. */
export interface StoredOptions {
  readonly allowed_domains?: readonly string[];
  /** Message `Block` as protobuf JSON. */
  readonly block?: JsonObject;
  /** Message `Geolocation` as protobuf JSON. */
  readonly geolocation?: JsonObject;
  readonly webdriver?: boolean;
}

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
  options: JSONColumnType<StoredOptions, string | undefined, never>;
  idle_timeout_seconds: number;
  created_at: Stamp;
  live_at: Date | null;
  ended_at: Date | null;
  ended_reason: StoredEndedReason | null;
  pause_reason: string | null;
  expires_at: Date;
  /** Time at which the session is ended if it is still provisioning. */
  provision_by: Date;
  worker_id: string;
  placement_epoch: BigInteger;
  control_epoch: ColumnType<string, bigint | number | string | undefined, bigint | number | string>;
  /** Client that holds control; null if there is none. */
  control_holder: ColumnType<string | null, undefined, string | null>;
  /** Time at which control expires. */
  control_lapses_at: ColumnType<Date | null, undefined, Date | null>;
  /** Time at which the control holder took control or last sent input. */
  control_input_at: ColumnType<Date | null, undefined, Date | null>;
  /** The agent session that drives the session. */
  agent_session_id: ColumnType<string | null, undefined, string | null>;
  /** Name of a session that a connecting client created. Unique among the running sessions of the account. */
  connect_name: ColumnType<string | null, string | null, never>;
  /** Number of updates by clients. The worker ignores timeouts with a lower number. */
  timeouts_number: Generated<number>;
  /** Level of the session's log; null for sessions created before logs existed. */
  logs: ColumnType<StoredLogLevel | null, StoredLogLevel, never>;
  /** Identifier of the user who created the session, or of the key if the key has no user; null if unknown. */
  made_by: ColumnType<string | null, string | null, never>;
  /** Tier of the account at creation; its limits apply to the session. */
  tier: ColumnType<string, string, never>;
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

/** One-time tickets with which CDP clients connect in place of an API key. */
interface ConnectTicketsTable {
  id: string;
  key_id: string;
  secret_hash: Buffer;
  /** Hash of the options that the ticket is bound to. */
  options_hash: Buffer;
  created_at: Stamp;
  opens_until: Date;
  used_at: Date | null;
}

/**
 * Sessions and fetches that wait at the concurrency limit of their account. A crash of PostgreSQL empties this unlogged
 * table.
 */
interface SlotWaitsTable {
  /** Identifier of the session or fetch. */
  id: string;
  account_id: string;
  position: Generated<string>;
  /** Expiry of the place. The gateway extends it while the session or fetch waits. */
  waits_until: Date;
}

export const sessionMigrations: Migrations = {
  "006-sessions": [
    `create table sessions (
      id text primary key,
      account_id text not null references accounts (id),
      status text not null check (status in ('provisioning', 'live', 'paused', 'destroyed', 'errored')),
      archetype text not null,
      runtime text not null,
      profile_id text,
      proxy_server text,
      proxy_username text,
      locale text,
      timezone text,
      viewport_width integer,
      viewport_height integer,
      viewport_scale double precision,
      labels jsonb not null,
      idle_timeout_seconds integer not null,
      created_at timestamptz not null default app_now(),
      live_at timestamptz,
      ended_at timestamptz,
      ended_reason text,
      pause_reason text,
      expires_at timestamptz not null,
      provision_by timestamptz not null,
      worker_id text not null references workers (id),
      placement_epoch bigint not null,
      control_epoch bigint not null default 0,
      control_holder text,
      control_lapses_at timestamptz,
      control_input_at timestamptz,
      agent_session_id text,
      tier text not null,
      slot_held boolean not null default true,
      check ((status in ('destroyed', 'errored')) = (ended_at is not null and ended_reason is not null))
    )`,
    "create index sessions_account on sessions (account_id, id desc)",
    "create index sessions_account_status on sessions (account_id, status, id desc)",
    "create index sessions_slot on sessions (worker_id) where slot_held",
    `create index sessions_running on sessions (account_id)
      where status in ('provisioning', 'live', 'paused')`,
    "create index sessions_provisioning on sessions (provision_by) where status = 'provisioning'",
    `create index sessions_running_by_worker on sessions (worker_id)
      where status in ('provisioning', 'live', 'paused')`,
    "create index sessions_expiry on sessions (expires_at) where status in ('provisioning', 'live', 'paused')",
    `create index sessions_control on sessions (control_lapses_at)
      where control_holder is not null and status in ('live', 'paused')`,

    `create table cdp_tokens (
      id text primary key,
      session_id text not null references sessions (id) on delete cascade,
      made_by text not null,
      secret_hash bytea not null,
      created_at timestamptz not null default app_now(),
      opens_until timestamptz not null,
      revoked_at timestamptz
    )`,
    "create index cdp_tokens_session on cdp_tokens (session_id)",
  ],
  "105-connect": [
    "alter table sessions add column connect_name text",
    `create unique index sessions_connect_name on sessions (account_id, connect_name)
      where connect_name is not null and status in ('provisioning', 'live', 'paused')`,
    `create table connect_tickets (
      id text primary key,
      key_id text not null references api_keys (id) on delete cascade,
      secret_hash bytea not null,
      options_hash bytea not null,
      created_at timestamptz not null default app_now(),
      opens_until timestamptz not null,
      used_at timestamptz
    )`,
    "create index connect_tickets_created on connect_tickets (created_at)",
  ],
  "120-session-timeouts": ["alter table sessions add column timeouts_number integer not null default 0"],
  "121-session-options": ["alter table sessions add column options jsonb not null default '{}'"],
  "115-slot-waits": [
    `create unlogged table slot_waits (
      id text primary key,
      account_id text not null references accounts (id) on delete cascade,
      position bigint generated always as identity,
      waits_until timestamptz not null
    )`,
    "create index slot_waits_account on slot_waits (account_id, position)",
    "create index slot_waits_until on slot_waits (waits_until)",
  ],
};

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    sessions: SessionsTable;
    cdp_tokens: CdpTokensTable;
    connect_tickets: ConnectTicketsTable;
    slot_waits: SlotWaitsTable;
  }
}

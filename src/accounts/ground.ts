import type { Migrations } from "../platform/postgres/schema.ts";

/** Tables of the first release: accounts, keys, workers, sessions, events and idempotent responses. */
export const groundMigrations: Migrations = {
  "001-ground": [
    `create table accounts (
    id text primary key,
    name text not null,
    tier text not null,
    developer boolean not null default false,
    created_at timestamptz not null default now()
  )`,
    "create unique index accounts_developer on accounts (developer) where developer",

    `create table api_keys (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    secret_hash bytea not null,
    scopes text[] not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz
  )`,
    "create index api_keys_account on api_keys (account_id, id)",
    "create index api_keys_expiry on api_keys (expires_at) where revoked_at is null and expires_at is not null",

    `create table workers (
    id text primary key,
    secret_hash bytea not null,
    address text not null,
    runtimes text[] not null,
    slots integer not null,
    isolation text not null,
    boot_id text not null unique,
    incarnation bigint not null,
    draining boolean not null default false,
    lease_until timestamptz not null,
    lost_at timestamptz,
    registered_at timestamptz not null default now()
  )`,

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
    created_at timestamptz not null default now(),
    live_at timestamptz,
    ended_at timestamptz,
    ended_reason text,
    pause_reason text,
    expires_at timestamptz not null,
    provision_by timestamptz not null,
    worker_id text not null references workers (id),
    placement_epoch bigint not null,
    control_epoch bigint not null default 0,
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

    `create table events (
    position bigint generated always as identity primary key,
    xid xid8 not null default pg_current_xact_id(),
    id text not null unique,
    account_id text not null references accounts (id),
    type text not null,
    subject text not null,
    data jsonb not null,
    created_at timestamptz not null default now(),
    placement_epoch bigint,
    incarnation bigint,
    sequence bigint
  )`,
    "create index events_order on events (xid, position)",
    "create index events_subject on events (subject, xid, position)",
    `create unique index events_worker_key on events (subject, placement_epoch, incarnation, sequence)
    where sequence is not null`,

    `create table idempotency_keys (
    account_id text not null references accounts (id),
    key text not null,
    request_hash bytea not null,
    answer bytea,
    failure text,
    created_at timestamptz not null default now(),
    primary key (account_id, key)
  )`,
    "create index idempotency_keys_age on idempotency_keys (created_at)",

    "create table lease_sweep (id boolean primary key default true check (id), swept_at timestamptz not null)",
    // A time in the distant past makes the first sweep renew every lease instead of ending sessions.
    "insert into lease_sweep (swept_at) values ('epoch')",
  ],
};

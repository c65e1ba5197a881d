import { type Kysely, sql } from "kysely";

/** Profiles, what they hold, and which sessions have them. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table profiles (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    description text,
    labels jsonb not null,
    engine text,
    version bigint not null default 0,
    store_id text,
    size_bytes bigint not null default 0,
    saved_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  "create index profiles_store on profiles (store_id)",
  "create index profiles_account on profiles (account_id, id desc)",

  `create table profile_stores (
    id text primary key,
    profile_id text not null references profiles (id) on delete cascade,
    data_key bytea not null,
    created_at timestamptz not null default now()
  )`,
  "create index profile_stores_profile on profile_stores (profile_id)",
  "create index profile_stores_age on profile_stores (created_at)",

  `create table profile_chunks (
    store_id text not null references profile_stores (id) on delete cascade,
    index integer not null,
    data bytea not null,
    primary key (store_id, index)
  )`,
  // Sealed bytes do not compress: PostgreSQL need not try.
  "alter table profile_chunks alter column data set storage external",

  `create table profile_uses (
    session_id text primary key references sessions (id),
    profile_id text not null references profiles (id) on delete cascade,
    account_id text not null,
    version bigint not null,
    held_until timestamptz,
    due_at timestamptz
  )`,
  "create index profile_uses_profile on profile_uses (profile_id)",
  "create index profile_uses_due on profile_uses (due_at) where due_at is not null",
];

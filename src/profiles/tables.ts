import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Profiles; their contents are in stores. */
export interface ProfilesTable {
  id: string;
  account_id: string;
  name: string;
  description: string | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  engine: string | null;
  /** Number of times that the contents were replaced. A save is accepted only if its session restored this version. */
  version: ColumnType<string, undefined, string>;
  /** Store of the current version; null while the version is 0. */
  store_id: string | null;
  size_bytes: ColumnType<string, undefined, number>;
  saved_at: Date | null;
  created_at: Stamp;
  updated_at: Stamp;
}

/**
 * Contents of profiles: packed, compressed and encrypted. If `profiles.store_id` does not refer to a store, the save of
 * the store is in progress or was interrupted.
 */
export interface ProfileStoresTable {
  id: string;
  profile_id: string;
  /** Encrypted data key of the chunks. */
  data_key: Buffer;
  created_at: Generated<Date>;
}

/** Parts of a store, in order. */
export interface ProfileChunksTable {
  store_id: string;
  index: number;
  data: Buffer;
}

/** Sessions that use a profile, until their save is accepted or has failed. */
export interface ProfileUsesTable {
  session_id: string;
  profile_id: string;
  account_id: string;
  /** The version that the session restored. */
  version: BigInteger;
  /** Time until which other sessions must wait for the profile; null while the session runs. */
  held_until: Date | null;
  /** Time at which a missing save counts as failed; null while the session runs. */
  due_at: Date | null;
  /** Expiry of a gateway's claim to fetch the save; null if unclaimed. */
  taken_until: ColumnType<Date | null, undefined, Date | null>;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    profiles: ProfilesTable;
    profile_stores: ProfileStoresTable;
    profile_chunks: ProfileChunksTable;
    profile_uses: ProfileUsesTable;
  }
}

export const profileMigrations: Migrations = {
  "023-profiles": [
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
    created_at timestamptz not null default app_now(),
    updated_at timestamptz not null default app_now()
  )`,
    "create index profiles_store on profiles (store_id)",
    "create index profiles_account on profiles (account_id, id desc)",

    `create table profile_stores (
    id text primary key,
    profile_id text not null references profiles (id) on delete cascade,
    data_key bytea not null,
    created_at timestamptz not null default app_now()
  )`,
    "create index profile_stores_profile on profile_stores (profile_id)",
    "create index profile_stores_age on profile_stores (created_at)",

    `create table profile_chunks (
    store_id text not null references profile_stores (id) on delete cascade,
    index integer not null,
    data bytea not null,
    primary key (store_id, index)
  )`,
    // Encrypted data does not compress, so compression is turned off.
    "alter table profile_chunks alter column data set storage external",

    `create table profile_uses (
    session_id text primary key references sessions (id),
    profile_id text not null references profiles (id) on delete cascade,
    account_id text not null,
    version bigint not null,
    held_until timestamptz,
    due_at timestamptz,
    taken_until timestamptz
  )`,
    "create index profile_uses_profile on profile_uses (profile_id)",
    "create index profile_uses_due on profile_uses (due_at) where due_at is not null",
  ],
};

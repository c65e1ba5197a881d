import type { Generated } from "kysely";
import type { Role } from "../kernel/role.ts";
import type { Migrations } from "../platform/postgres/schema.ts";

/** People. One whose address is not verified is a sign-up that is pending: neither account nor login belongs to it yet. */
export interface UsersTable {
  id: string;
  /** In lower case, unique. */
  email: string;
  name: string;
  /** argon2id, as a PHC string; null for who logs in by magic links alone. */
  password_hash: string | null;
  email_verified_at: Date | null;
  created_at: Date;
  /** The account that is made when the address is verified. */
  pending_account_id: string | null;
  pending_account_name: string | null;
  /** The hash of the invite that is accepted instead, if it is open then. */
  pending_invite: Generated<Buffer | null>;
  /** The revision of the terms that the account to be made accepts. */
  pending_revision: Generated<string | null>;
  /** Several have signed up with the address, and nobody knows which of them has the mailbox. */
  pending_contested: Generated<boolean>;
  /** The seed of the second factor, sealed. It counts from `totp_enrolled_at` on. */
  totp_seed: Buffer | null;
  totp_begun_at: Date | null;
  totp_enrolled_at: Date | null;
  /** The time step of the last code that was taken (RFC 6238): none of it, or before it, is taken again. */
  totp_counter: string | null;
}

/** Who belongs to which account. */
interface MembershipsTable {
  id: string;
  account_id: string;
  user_id: string;
  role: Role;
  created_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    users: UsersTable;
    memberships: MembershipsTable;
  }
}

export const peopleMigrations: Migrations = {
  "023-overrides": ["alter table accounts add column overrides jsonb not null default '[]'"],
  "020-people": [
    "alter table accounts add column disabled_at timestamptz",

    `create table users (
    id text primary key,
    email text not null unique,
    name text not null,
    password_hash text,
    email_verified_at timestamptz,
    created_at timestamptz not null,
    pending_account_id text,
    pending_account_name text,
    totp_seed bytea,
    totp_begun_at timestamptz,
    totp_enrolled_at timestamptz,
    totp_counter bigint
  )`,
    "create index users_pending on users (created_at) where email_verified_at is null",

    `create table memberships (
    id text primary key,
    account_id text not null references accounts (id),
    user_id text not null references users (id),
    role text not null check (role in ('owner', 'admin', 'member')),
    created_at timestamptz not null,
    unique (account_id, user_id)
  )`,
    "create index memberships_user on memberships (user_id, created_at)",
  ],
  "041-pending-invites": ["alter table users add column pending_invite bytea"],
  "100-accepting-sign-ups": ["alter table users add column pending_revision text"],
  "096-contested-sign-ups": ["alter table users add column pending_contested boolean not null default false"],
};

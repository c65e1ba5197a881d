import type { Generated } from "kysely";
import type { Role } from "../kernel/role.ts";
import type { Migrations } from "../platform/postgres/schema.ts";

/** Users. A row without a verified address is a pending sign-up, with neither accounts nor logins. */
export interface UsersTable {
  id: string;
  /** Lower case, unique. */
  email: string;
  name: string;
  /** argon2id, as a PHC string; null for users who log in with magic links only. */
  password_hash: string | null;
  email_verified_at: Date | null;
  created_at: Date;
  /** The account to create when the address is verified. */
  pending_account_id: string | null;
  pending_account_name: string | null;
  /** Hash of the invite to accept instead of creating an account, if the invite is still open. */
  pending_invite: Generated<Buffer | null>;
  /** Revision of the terms that the new account accepts. */
  pending_revision: Generated<string | null>;
  /** Whether several people signed up with the address, so that the owner of the mailbox is unknown. */
  pending_contested: Generated<boolean>;
  /** Encrypted TOTP seed; in force from `totp_enrolled_at`. */
  totp_seed: Buffer | null;
  totp_begun_at: Date | null;
  totp_enrolled_at: Date | null;
  /** Time step of the last accepted code (RFC 6238); codes of this or earlier steps are rejected. */
  totp_counter: string | null;
}

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

export const accountMigrations: Migrations = {
  "002-accounts": [
    `create table accounts (
      id text primary key,
      name text not null,
      tier text not null,
      arranged_tier text,
      developer boolean not null default false,
      created_at timestamptz not null default app_now(),
      overrides jsonb not null default '[]',
      disabled_at timestamptz,
      deletes_at timestamptz
    )`,
    "create unique index accounts_developer on accounts (developer) where developer",
    "create index accounts_deletion on accounts (deletes_at) where deletes_at is not null",

    `create table users (
      id text primary key,
      email text not null unique,
      name text not null,
      password_hash text,
      email_verified_at timestamptz,
      created_at timestamptz not null,
      pending_account_id text,
      pending_account_name text,
      pending_invite bytea,
      pending_revision text,
      pending_contested boolean not null default false,
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
};

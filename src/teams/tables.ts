import type { Generated } from "kysely";
import type { Role } from "../kernel/role.ts";
import type { Migrations } from "../platform/postgres/schema.ts";

/** Invites to accounts. Only hashes of the tokens are stored. */
export interface InvitesTable {
  id: string;
  account_id: string;
  /** Canonical address of the recipient. */
  email: string;
  role: Exclude<Role, "owner">;
  token_hash: Buffer;
  /**
   * The user who sent the invite last, directly or with a key; null for a key created by the operator, or if the user
   * was deleted.
   */
  invited_by: string | null;
  /** The key with which the invite was sent last, if any. */
  invited_by_key: Generated<string | null>;
  created_at: Date;
  expires_at: Date;
  accepted_at: Date | null;
  revoked_at: Date | null;
  /** Send times, oldest first. */
  sent_at: Date[];
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    invites: InvitesTable;
  }
}

export const teamMigrations: Migrations = {
  "017-invites": [
    `create table invites (
      id text primary key,
      account_id text not null references accounts (id) on delete cascade,
      email text not null,
      role text not null check (role in ('admin', 'member')),
      token_hash bytea not null unique,
      invited_by text references users (id) on delete set null,
      invited_by_key text,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      accepted_at timestamptz,
      revoked_at timestamptz,
      sent_at timestamptz[] not null
    )`,
    "create index invites_account on invites (account_id, id desc)",
    "create unique index invites_open on invites (account_id, email) where accepted_at is null and revoked_at is null",
    "create index invites_by on invites (invited_by) where accepted_at is null and revoked_at is null",
  ],
};

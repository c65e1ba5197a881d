import type { Generated } from "kysely";
import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** API keys. Only the hash of each secret is stored. */
export interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  secret_hash: Buffer;
  scopes: string[];
  created_at: Stamp;
  expires_at: Date | null;
  revoked_at: Date | null;
  /** The user who created the key, directly or by another key, or took it over; null for a key of the operator. */
  created_by: string | null;
  /** The key that created this key, if any. */
  created_by_key: Generated<string | null>;
  /** Networks from which the key can be used; empty allows all. */
  addresses: Generated<string[]>;
  /** Last use, accurate to a minute. */
  last_used_at: Date | null;
  /** The key that replaced this key. */
  rotated_to: string | null;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    api_keys: ApiKeysTable;
  }
}

export const keyMigrations: Migrations = {
  "003-api-keys": [
    `create table api_keys (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      secret_hash bytea not null,
      scopes text[] not null,
      created_at timestamptz not null default app_now(),
      expires_at timestamptz,
      revoked_at timestamptz,
      created_by text,
      created_by_key text,
      addresses text[] not null default '{}',
      last_used_at timestamptz,
      rotated_to text
    )`,
    "create index api_keys_account on api_keys (account_id, id)",
    "create index api_keys_expiry on api_keys (expires_at) where revoked_at is null and expires_at is not null",
  ],
};

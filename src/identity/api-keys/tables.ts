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
  /** The user who created the key, directly or by another key; null for a key created by the operator. */
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
  "030-api-keys": [
    `alter table api_keys
      add column created_by text,
      add column addresses text[] not null default '{}',
      add column last_used_at timestamptz,
      add column rotated_to text`,
  ],
  "096-key-makers": ["alter table api_keys add column created_by_key text"],
};

import type { Generated } from "kysely";
import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** Keys of the API; of their secrets only the hash. */
export interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  secret_hash: Buffer;
  scopes: string[];
  created_at: Stamp;
  expires_at: Date | null;
  revoked_at: Date | null;
  /** The user who made it, or whose key did; null where the operator did. */
  created_by: string | null;
  /** The key that made it, if it was one. */
  created_by_key: Generated<string | null>;
  /** Networks from which it can be used; empty: every one. */
  addresses: Generated<string[]>;
  /** To within a minute. */
  last_used_at: Date | null;
  /** The key that has taken its place. */
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

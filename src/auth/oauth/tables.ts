import type { Migrations } from "../../platform/postgres/schema.ts";

/** Access tokens for API keys. Only hashes of the secrets are stored. */
interface KeyTokensTable {
  id: string;
  key_id: string;
  secret_hash: Buffer;
  scopes: string[];
  expires_at: Date;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    key_tokens: KeyTokensTable;
  }
}

export const oauthMigrations: Migrations = {
  "004-key-tokens": [
    `create table key_tokens (
    id text primary key,
    key_id text not null references api_keys (id) on delete cascade,
    secret_hash bytea not null,
    scopes text[] not null,
    expires_at timestamptz not null
  )`,
    "create index key_tokens_key on key_tokens (key_id)",
    "create index key_tokens_age on key_tokens (expires_at)",
  ],
};

import type { Migrations } from "../../platform/postgres/schema.ts";

export type StoredProvider = "anthropic" | "openai" | "google" | "openai_compatible";

export interface LlmKeysTable {
  account_id: string;
  provider: StoredProvider;
  /** Encrypted. */
  api_key: Buffer;
  key_suffix: string;
  base_url: string | null;
  model: string | null;
  /** Whether the model accepts pictures; null for the default of the provider. */
  vision: boolean | null;
  created_at: Date;
  tested_at: Date | null;
  test_ok: boolean | null;
  last_used_at: Date | null;
}

/** Bundled LLM settings of accounts; without a row the defaults apply. */
interface LlmSettingsTable {
  account_id: string;
  consent: boolean;
  /** Null for the default. */
  monthly_cap_cents: number | null;
  consented_at: Date | null;
  updated_at: Date | null;
}

/** Cost of the bundled LLM by account and month. */
interface LlmSpendingTable {
  account_id: string;
  /** First day of the month, UTC. */
  month: string;
  /** Millionths of a US dollar. */
  spent: string;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    llm_keys: LlmKeysTable;
    llm_settings: LlmSettingsTable;
    llm_spending: LlmSpendingTable;
  }
}

export const llmMigrations: Migrations = {
  "026-llm": [
    `create table llm_keys (
      account_id text primary key references accounts (id) on delete cascade,
      provider text not null,
      api_key bytea not null,
      key_suffix text not null,
      base_url text,
      model text,
      vision boolean,
      created_at timestamptz not null,
      tested_at timestamptz,
      test_ok boolean,
      last_used_at timestamptz
    )`,
    `create table llm_settings (
      account_id text primary key references accounts (id) on delete cascade,
      consent boolean not null default false,
      monthly_cap_cents integer,
      consented_at timestamptz,
      updated_at timestamptz
    )`,
    `create table llm_spending (
      account_id text not null references accounts (id) on delete cascade,
      month date not null,
      spent bigint not null,
      primary key (account_id, month)
    )`,
  ],
};

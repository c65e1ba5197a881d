import type { ColumnType, Generated } from "kysely";
import type { BigInteger, Migrations } from "../platform/postgres/schema.ts";

/** A UTC day, such as `2026-11-22`. Must be cast to text when read, because pg returns local midnight. */
type Day = ColumnType<string, string, never>;

/** Usage of an account by sessions and fetches that ended, per day. */
interface AccountUsageTable {
  account_id: string;
  day: Day;
  session_ms: BigInteger;
  /** Sessions that went live on the day. */
  sessions: number;
  fetch_ms: BigInteger;
  /** Fetches that began on the day. */
  fetches: number;
}

/** Reported quota thresholds, once per month and limit. */
interface QuotaNoticesTable {
  account_id: string;
  quota: string;
  /** First day of the month. */
  month: Day;
  percent: number;
  limit_value: BigInteger;
  noted_at: Generated<Date>;
}

/** Time of the next quota check of each account with running sessions. */
interface QuotaChecksTable {
  account_id: string;
  look_at: Date;
}

/** Paid tiers: see paid-time.ts. */
interface TierGrantsTable {
  id: string;
  account_id: string;
  kind: "card" | "block";
  tier: string;
  /** Whether a payment sandbox created the grant. */
  sandbox: boolean;
  months: number;
  left_ms: BigInteger | null;
  running_since: Date | null;
  until: Date | null;
  /** Time at which the grant is due to end. */
  ends_at: Date | null;
  ended_at: Date | null;
  created_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    tier_grants: TierGrantsTable;
    account_usage: AccountUsageTable;
    quota_notices: QuotaNoticesTable;
    quota_looks: QuotaChecksTable;
  }
}

export const limitsMigrations: Migrations = {
  "019-limits": [
    `create table account_usage (
      account_id text not null references accounts (id) on delete cascade,
      day date not null,
      session_ms bigint not null,
      sessions integer not null,
      primary key (account_id, day)
    )`,
    `create table quota_notices (
      account_id text not null references accounts (id) on delete cascade,
      quota text not null,
      month date not null,
      percent integer not null,
      limit_value bigint not null,
      noted_at timestamptz not null default app_now(),
      primary key (account_id, quota, month, percent, limit_value)
    )`,
    `create table quota_looks (
      account_id text primary key references accounts (id) on delete cascade,
      look_at timestamptz not null
    )`,
    "create index quota_looks_due on quota_looks (look_at)",

    `create table tier_grants (
      id text primary key,
      account_id text not null references accounts (id),
      kind text not null check (kind in ('card', 'block')),
      tier text not null,
      sandbox boolean not null,
      months integer not null,
      left_ms bigint,
      running_since timestamptz,
      until timestamptz,
      ends_at timestamptz,
      ended_at timestamptz,
      created_at timestamptz not null
    )`,
    "create index tier_grants_account on tier_grants (account_id) where ended_at is null",
    "create index tier_grants_ends on tier_grants (ends_at) where ended_at is null",
    "create index tier_grants_sandbox on tier_grants (account_id) where ended_at is null and sandbox",
  ],
  "118-fetch-usage": [
    "alter table account_usage add column fetch_ms bigint not null default 0",
    "alter table account_usage add column fetches integer not null default 0",
  ],
};

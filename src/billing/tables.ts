import type { Migrations } from "../platform/postgres/schema.ts";

/** Who an account is for the processor of cards. */
interface CardCustomersTable {
  id: string;
  account_id: string;
  sandbox: boolean;
  /** When what the processor has of it was last looked at. */
  checked_at: Date;
  created_at: Date;
}

/** Prices that we have made with the processor: a subscription is what its price says, and nothing else. */
interface CardPricesTable {
  id: string;
  tier: string;
  interval: "month" | "year";
  amount_cents: number;
  currency: string;
  sandbox: boolean;
}

/** Pages to pay on that were opened. */
interface CardCheckoutsTable {
  id: string;
  customer_id: string;
  created_at: Date;
  expires_at: Date;
  /** When the processor is asked what has become of it, should no notice come; null: not again. */
  look_at: Date | null;
}

/** Subscriptions that are paid by card, as the processor last had them. */
export interface CardSubscriptionsTable {
  id: string;
  account_id: string;
  customer_id: string;
  status: "active" | "past_due" | "cancelling" | "ended";
  tier: string;
  interval: "month" | "year";
  amount_cents: number;
  currency: string;
  period_started_at: Date;
  period_ends_at: Date;
  past_due_since: Date | null;
  livemode: boolean;
  sandbox: boolean;
  created_at: Date;
  updated_at: Date;
}

/** Notices of processors: each counts once. */
interface ProcessorNoticesTable {
  id: string;
  processor: string;
  kind: string;
  subject: string;
  received_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    card_customers: CardCustomersTable;
    card_prices: CardPricesTable;
    card_checkouts: CardCheckoutsTable;
    card_subscriptions: CardSubscriptionsTable;
    processor_notices: ProcessorNoticesTable;
  }
}

export const billingMigrations: Migrations = {
  "072-billing": [
    `create table card_customers (
      id text primary key,
      account_id text not null references accounts (id),
      sandbox boolean not null,
      checked_at timestamptz not null,
      created_at timestamptz not null,
      unique (account_id, sandbox)
    )`,
    "create index card_customers_checked on card_customers (checked_at)",
    `create table card_prices (
      id text primary key,
      tier text not null,
      interval text not null check (interval in ('month', 'year')),
      amount_cents integer not null,
      currency text not null,
      sandbox boolean not null
    )`,
    `create table card_checkouts (
      id text primary key,
      customer_id text not null references card_customers (id),
      created_at timestamptz not null,
      expires_at timestamptz not null,
      look_at timestamptz
    )`,
    "create index card_checkouts_look on card_checkouts (look_at) where look_at is not null",
    "create index card_checkouts_customer on card_checkouts (customer_id)",
    `create table card_subscriptions (
      id text primary key,
      account_id text not null references accounts (id),
      customer_id text not null references card_customers (id),
      status text not null check (status in ('active', 'past_due', 'cancelling', 'ended')),
      tier text not null,
      interval text not null check (interval in ('month', 'year')),
      amount_cents integer not null,
      currency text not null,
      period_started_at timestamptz not null,
      period_ends_at timestamptz not null,
      past_due_since timestamptz,
      livemode boolean not null,
      sandbox boolean not null,
      created_at timestamptz not null,
      updated_at timestamptz not null
    )`,
    "create index card_subscriptions_account on card_subscriptions (account_id)",
    `create table processor_notices (
      id text primary key,
      processor text not null,
      kind text not null,
      subject text not null,
      received_at timestamptz not null
    )`,
    "create index processor_notices_age on processor_notices (received_at)",
  ],
};

import type { Migrations } from "../platform/postgres/schema.ts";

/** Customers of the card processor, by account. */
interface CardCustomersTable {
  id: string;
  account_id: string;
  sandbox: boolean;
  /** Time of the last reconciliation. */
  checked_at: Date;
  created_at: Date;
}

/** Prices that the service created at the processor. The price determines the tier of a subscription. */
interface CardPricesTable {
  id: string;
  tier: string;
  interval: "month" | "year";
  amount_cents: number;
  currency: string;
  sandbox: boolean;
}

/** Checkout pages that were opened. */
interface CardCheckoutsTable {
  id: string;
  customer_id: string;
  created_at: Date;
  expires_at: Date;
  /** When to poll the processor for the outcome, in case the webhook is lost; null: never again. */
  look_at: Date | null;
}

/** Card subscriptions, as last fetched from the processor. */
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

/** Webhooks of processors, for deduplication. */
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
  "020-billing": [
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

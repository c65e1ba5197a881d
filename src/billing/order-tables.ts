import type { ColumnType, Generated } from "kysely";
import type { Migrations } from "../platform/postgres/schema.ts";

/** Status of an order; see CryptoOrderStatus in crypto_order.proto. */
export type OrderStatus = "quoted" | "awaiting_payment" | "confirming" | "paid" | "failed" | "cancelled";

export type OrderFailure = "expired" | "processor_failed" | "refunded";

/** Irregularity of the amount paid for an order. An operator reviews the order. */
export type Irregularity = "too_little" | "too_much" | "too_late";

/** Orders paid with a cryptocurrency. Crypto amounts and the exchange rate are exact decimal numbers as text. */
export interface CryptoOrdersTable {
  id: string;
  account_id: string;
  status: OrderStatus;
  failure_reason: OrderFailure | null;
  tier: string;
  months: number;
  amount_cents: number;
  currency: string;
  crypto_currency: string;
  crypto_amount: string;
  crypto_amount_paid: Generated<string>;
  exchange_rate: string;
  quote_expires_at: Date | null;
  /** Identifier of the invoice at the processor. */
  invoice_id: string | null;
  payment_address: string | null;
  payment_uri: string | null;
  checkout_url: string | null;
  expires_at: Date | null;
  transaction_ids: ColumnType<string[], string[] | undefined, string[]>;
  irregularity: Irregularity | null;
  /** Amount received for a paid order at the time an operator last returned an excess payment. */
  crypto_amount_known: string | null;
  refund_address: string | null;
  note: string | null;
  invoice_lines: ColumnType<string[], string[] | undefined, string[]>;
  created_at: Date;
  updated_at: Date;
  paid_at: Date | null;
  refunded_at: Date | null;
  refunded_cents: Generated<number>;
  receipt_number: string | null;
  receipt_revision: Generated<number>;
  /** Name of the account when the order was paid. */
  buyer: string | null;
  livemode: boolean;
  sandbox: boolean;
  /** Time of the next poll of the processor, in case a webhook is lost; null: no poll. */
  look_at: Date | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    crypto_orders: CryptoOrdersTable;
  }
}

export const orderMigrations: Migrations = {
  "021-crypto-orders": [
    `create table crypto_orders (
      id text primary key,
      account_id text not null references accounts (id),
      status text not null
        check (status in ('quoted', 'awaiting_payment', 'confirming', 'paid', 'failed', 'cancelled')),
      failure_reason text check (failure_reason in ('expired', 'processor_failed', 'refunded')),
      tier text not null,
      months integer not null,
      amount_cents integer not null,
      currency text not null,
      crypto_currency text not null,
      crypto_amount text not null,
      crypto_amount_paid text not null default '0',
      exchange_rate text not null,
      quote_expires_at timestamptz,
      invoice_id text unique,
      payment_address text,
      payment_uri text,
      checkout_url text,
      expires_at timestamptz,
      transaction_ids text[] not null default '{}',
      irregularity text check (irregularity in ('too_little', 'too_much', 'too_late')),
      crypto_amount_known text,
      refund_address text,
      note text,
      invoice_lines text[] not null default '{}',
      created_at timestamptz not null,
      updated_at timestamptz not null,
      paid_at timestamptz,
      refunded_at timestamptz,
      refunded_cents integer not null default 0,
      receipt_number text,
      receipt_revision integer not null default 1,
      buyer text,
      livemode boolean not null,
      sandbox boolean not null,
      look_at timestamptz,
      check ((status = 'failed') = (failure_reason is not null)),
      check ((status = 'paid') = (paid_at is not null))
    )`,
    "create index crypto_orders_account on crypto_orders (account_id, id desc)",
    `create unique index crypto_orders_open on crypto_orders (account_id)
      where status in ('awaiting_payment', 'confirming')`,
    "create unique index crypto_orders_receipt on crypto_orders (account_id, receipt_number)",
    "create index crypto_orders_look on crypto_orders (look_at) where look_at is not null",
    "create index crypto_orders_quotes on crypto_orders (quote_expires_at) where status = 'quoted'",
  ],
};

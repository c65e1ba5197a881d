import { type Insertable, type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { CardSubscriptionsTable } from "./tables.ts";

export type SubscriptionRow = Selectable<CardSubscriptionsTable>;

/** Customer of the card processor. */
export interface Customer {
  readonly id: string;
  readonly account_id: string;
}

export function findCustomer(db: Queryable, accountId: string, sandbox: boolean): Promise<Customer | undefined> {
  const select = db.sql.selectFrom("card_customers").select(["id", "account_id"]);
  return select.where("account_id", "=", accountId).where("sandbox", "=", sandbox).executeTakeFirst();
}

/** Finds a customer by identifier. */
export function findOwner(db: Queryable, id: string, sandbox: boolean): Promise<Customer | undefined> {
  const select = db.sql.selectFrom("card_customers").select(["id", "account_id"]);
  return select.where("id", "=", id).where("sandbox", "=", sandbox).executeTakeFirst();
}

/** Lists the customer identifiers of an account, including sandbox customers. */
export async function listCustomers(db: Queryable, accountId: string): Promise<string[]> {
  const select = db.sql.selectFrom("card_customers").select("id").where("account_id", "=", accountId);
  return (await select.orderBy("id").execute()).map(({ id }) => id);
}

/** Inserts a customer. If the account already has a customer, nothing changes. */
export async function saveCustomer(db: Queryable, customer: Customer, sandbox: boolean, now: Date): Promise<void> {
  await db.sql
    .insertInto("card_customers")
    .values({ ...customer, sandbox, checked_at: now, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** A price that the service created at the processor. */
export interface CardPrice {
  readonly id: string;
  readonly tier: string;
  readonly interval: "month" | "year";
  readonly amount_cents: number;
  readonly currency: string;
  readonly sandbox: boolean;
}

/** Finds the stored price with the given tier, interval, amount, currency and mode. */
export function findPrice(db: Queryable, wanted: Omit<CardPrice, "id">): Promise<CardPrice | undefined> {
  const select = db.sql.selectFrom("card_prices").selectAll();
  return select
    .where("tier", "=", wanted.tier)
    .where("interval", "=", wanted.interval)
    .where("amount_cents", "=", wanted.amount_cents)
    .where("currency", "=", wanted.currency)
    .where("sandbox", "=", wanted.sandbox)
    .executeTakeFirst();
}

export async function savePrice(db: Queryable, price: CardPrice): Promise<void> {
  await db.sql
    .insertInto("card_prices")
    .values(price)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export function listPrices(db: Queryable, sandbox: boolean): Promise<CardPrice[]> {
  return db.sql.selectFrom("card_prices").selectAll().where("sandbox", "=", sandbox).execute();
}

/** Lists the subscriptions of an account, newest first. */
export function listSubscriptions(db: Queryable, accountId: string, sandbox: boolean): Promise<SubscriptionRow[]> {
  return db.sql
    .selectFrom("card_subscriptions")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("sandbox", "=", sandbox)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .execute();
}

export function saveSubscription(tx: Tx, row: Insertable<CardSubscriptionsTable>): void {
  const { id: _, account_id: __, created_at: ___, ...changes } = row;
  tx.send(
    tx.sql
      .insertInto("card_subscriptions")
      .values(row)
      .onConflict((conflict) => conflict.column("id").doUpdateSet(changes)),
  );
}

export function insertCheckout(
  tx: Tx,
  checkout: { id: string; customerId: string; now: Date; expiresAt: Date; checkAt: Date },
): void {
  const { id, customerId, now, expiresAt, checkAt } = checkout;
  const row = { id, customer_id: customerId, created_at: now, expires_at: expiresAt, look_at: checkAt };
  tx.send(
    tx.sql
      .insertInto("card_checkouts")
      .values(row)
      .onConflict((conflict) => conflict.doNothing()),
  );
}

/** Lists the identifiers of a customer's checkouts that may still be open. */
export async function listOpenCheckouts(db: Queryable, customerId: string, now: Date): Promise<string[]> {
  const select = db.sql.selectFrom("card_checkouts").select("id").where("customer_id", "=", customerId);
  return (await select.where("expires_at", ">", now).where("look_at", "is not", null).execute()).map(({ id }) => id);
}

export async function closeCheckout(db: Queryable, id: string): Promise<void> {
  await db.sql.updateTable("card_checkouts").set({ look_at: null }).where("id", "=", id).execute();
}

/** Condition: a checkout is due for a poll. */
export const checkoutsAreDue = (now: Date): RawBuilder<SqlBool> =>
  sql`exists (select from card_checkouts where look_at <= ${now})`;

/** Lists up to 100 checkouts that are due to be polled. */
export function findDueCheckouts(db: Queryable, now: Date) {
  return db.sql
    .selectFrom("card_checkouts")
    .select(["id", "customer_id", "created_at"])
    .where("look_at", "<=", now)
    .limit(100)
    .execute();
}

/** Sets when a checkout is polled next; null: never again. */
export function setCheckAt(tx: Tx, id: string, checkAt: Date | null): void {
  tx.send(tx.sql.updateTable("card_checkouts").set({ look_at: checkAt }).where("id", "=", id));
}

/** Marks up to 100 customers last reconciled at `since` or before as reconciled. Returns their identifiers. */
export async function claimUnreconciled(tx: Tx, since: Date, now: Date, sandbox: boolean): Promise<string[]> {
  const due = sql`select id from card_customers where checked_at <= ${since} and sandbox = ${sandbox}
    order by checked_at limit 100 for update skip locked`;
  const { rows } = await sql<{ id: string }>`
    update card_customers set checked_at = ${now} where id in (${due}) returning id`.execute(tx.sql);
  return rows.map(({ id }) => id);
}

/** Records a webhook. Returns false if the webhook was already recorded. */
export async function saveProcessorWebhook(
  tx: Tx,
  notice: { id: string; processor: string; kind: string; subject: string; now: Date },
): Promise<boolean> {
  const { now, ...rest } = notice;
  const row = await tx.sql
    .insertInto("processor_notices")
    .values({ ...rest, received_at: now })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes records of webhooks received before a time. If such a webhook is redelivered later, it is handled again. */
export async function deleteProcessorWebhooksBefore(db: Queryable, before: Date): Promise<void> {
  await db.sql.deleteFrom("processor_notices").where("received_at", "<", before).execute();
}

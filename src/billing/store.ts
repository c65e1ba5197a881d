import { type Insertable, type Selectable, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { CardSubscriptionsTable } from "./tables.ts";

/** A subscription as its row has it. */
export type SubscriptionRow = Selectable<CardSubscriptionsTable>;

/** A customer of the processor of cards. */
export interface Customer {
  readonly id: string;
  readonly account_id: string;
}

/** Finds who an account is for the processor. */
export function findCustomer(db: Queryable, accountId: string, sandbox: boolean): Promise<Customer | undefined> {
  const select = db.sql.selectFrom("card_customers").select(["id", "account_id"]);
  return select.where("account_id", "=", accountId).where("sandbox", "=", sandbox).executeTakeFirst();
}

/** Finds whose a customer is. */
export function findOwner(db: Queryable, id: string, sandbox: boolean): Promise<Customer | undefined> {
  const select = db.sql.selectFrom("card_customers").select(["id", "account_id"]);
  return select.where("id", "=", id).where("sandbox", "=", sandbox).executeTakeFirst();
}

/** Lists who an account is for processors, the sandbox among them. */
export async function listCustomers(db: Queryable, accountId: string): Promise<string[]> {
  const select = db.sql.selectFrom("card_customers").select("id").where("account_id", "=", accountId);
  return (await select.orderBy("id").execute()).map(({ id }) => id);
}

/** Keeps who an account is for the processor; of two at once the first stays. */
export async function keepCustomer(db: Queryable, customer: Customer, sandbox: boolean, now: Date): Promise<void> {
  await db.sql
    .insertInto("card_customers")
    .values({ ...customer, sandbox, checked_at: now, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** What a price is that we have made. */
export interface CardPrice {
  readonly id: string;
  readonly tier: string;
  readonly interval: "month" | "year";
  readonly amount_cents: number;
  readonly currency: string;
  readonly sandbox: boolean;
}

/** Finds the price that we have made for something. */
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

/** Keeps a price. */
export async function keepPrice(db: Queryable, price: CardPrice): Promise<void> {
  await db.sql
    .insertInto("card_prices")
    .values(price)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Lists all prices that we have made. */
export function listPrices(db: Queryable, sandbox: boolean): Promise<CardPrice[]> {
  return db.sql.selectFrom("card_prices").selectAll().where("sandbox", "=", sandbox).execute();
}

/** Lists the subscriptions of an account, the newest first. */
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

/** Saves a subscription, new or changed. */
export function saveSubscription(tx: Tx, row: Insertable<CardSubscriptionsTable>): void {
  const { id: _, account_id: __, created_at: ___, ...changes } = row;
  tx.send(
    tx.sql
      .insertInto("card_subscriptions")
      .values(row)
      .onConflict((conflict) => conflict.column("id").doUpdateSet(changes)),
  );
}

/** Keeps a checkout that was opened. */
export function insertCheckout(
  tx: Tx,
  checkout: { id: string; customerId: string; now: Date; expiresAt: Date; lookAt: Date },
): void {
  const { id, customerId, now, expiresAt, lookAt } = checkout;
  const row = { id, customer_id: customerId, created_at: now, expires_at: expiresAt, look_at: lookAt };
  tx.send(
    tx.sql
      .insertInto("card_checkouts")
      .values(row)
      .onConflict((conflict) => conflict.doNothing()),
  );
}

/** Lists the checkouts of a customer that may still be open. */
export async function listOpenCheckouts(db: Queryable, customerId: string, now: Date): Promise<string[]> {
  const select = db.sql.selectFrom("card_checkouts").select("id").where("customer_id", "=", customerId);
  return (await select.where("expires_at", ">", now).where("look_at", "is not", null).execute()).map(({ id }) => id);
}

/** Notes that a checkout is closed. */
export async function closeCheckout(db: Queryable, id: string): Promise<void> {
  await db.sql.updateTable("card_checkouts").set({ look_at: null }).where("id", "=", id).execute();
}

/** Lists customers with a checkout that is due to be looked at, and when that was opened. */
export function findDueCheckouts(db: Queryable, now: Date) {
  return db.sql
    .selectFrom("card_checkouts")
    .select(["id", "customer_id", "created_at"])
    .where("look_at", "<=", now)
    .limit(100)
    .execute();
}

/** Says when a checkout is looked at next. */
export function setLookAt(tx: Tx, id: string, lookAt: Date | null): void {
  tx.send(tx.sql.updateTable("card_checkouts").set({ look_at: lookAt }).where("id", "=", id));
}

/** Takes customers that nobody has looked at since a time. */
export async function takeUnchecked(tx: Tx, since: Date, now: Date, sandbox: boolean): Promise<string[]> {
  const due = sql`select id from card_customers where checked_at <= ${since} and sandbox = ${sandbox}
    order by checked_at limit 100 for update skip locked`;
  const { rows } = await sql<{ id: string }>`
    update card_customers set checked_at = ${now} where id in (${due}) returning id`.execute(tx.sql);
  return rows.map(({ id }) => id);
}

/** Keeps a notice; false when it came before. */
export async function keepNotice(
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

/** Deletes notices that came before a time: no processor sends them again by then. */
export async function deleteNoticesBefore(db: Queryable, before: Date): Promise<void> {
  await db.sql.deleteFrom("processor_notices").where("received_at", "<", before).execute();
}

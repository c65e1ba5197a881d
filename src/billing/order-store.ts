import { type Insertable, type RawBuilder, type Selectable, type SqlBool, sql, type Updateable } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { CryptoOrdersTable, OrderStatus } from "./order-tables.ts";

export type OrderRow = Selectable<CryptoOrdersTable>;

export type OrderChanges = Updateable<CryptoOrdersTable>;

/** Statuses in which an order accepts payments. */
const openStatuses = ["awaiting_payment", "confirming"] as const satisfies readonly OrderStatus[];

export const isOpenOrder = ({ status }: OrderRow): boolean => openStatuses.some((open) => open === status);

const selectOrders = (db: Queryable) => db.sql.selectFrom("crypto_orders").selectAll();

export async function insertOrder(tx: Tx, order: Insertable<CryptoOrdersTable>): Promise<OrderRow> {
  return tx.sql.insertInto("crypto_orders").values(order).returningAll().executeTakeFirstOrThrow();
}

export function findOrder(db: Queryable, id: string, accountId: string): Promise<OrderRow | undefined> {
  return selectOrders(db).where("id", "=", id).where("account_id", "=", accountId).executeTakeFirst();
}

export function findAnyOrder(db: Queryable, id: string): Promise<OrderRow | undefined> {
  return selectOrders(db).where("id", "=", id).executeTakeFirst();
}

/** Finds the identifier of the order to which an invoice of the processor belongs. */
export async function findOrderOfInvoice(db: Queryable, invoiceId: string, sandbox: boolean) {
  const select = db.sql.selectFrom("crypto_orders").select("id").where("invoice_id", "=", invoiceId);
  return select.where("sandbox", "=", sandbox).executeTakeFirst();
}

export async function findOpenOrder(db: Queryable, accountId: string): Promise<string | undefined> {
  const select = db.sql.selectFrom("crypto_orders").select("id").where("account_id", "=", accountId);
  return (await select.where("status", "in", openStatuses).executeTakeFirst())?.id;
}

/** Updates and returns an order if its status is one of `from`. Returns undefined otherwise. */
export function changeOrder(
  tx: Tx,
  id: string,
  from: readonly OrderStatus[],
  changes: OrderChanges,
): Promise<OrderRow | undefined> {
  const update = tx.sql.updateTable("crypto_orders").set(changes).where("id", "=", id);
  return update.where("status", "in", from).returningAll().executeTakeFirst();
}

export interface OrderListQuery {
  readonly accountId: string | undefined;
  readonly status: OrderStatus | undefined;
  /** Identifier of an order. Only older orders are listed. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists orders, newest first. */
export async function listOrders(db: Queryable, query: OrderListQuery): Promise<OrderRow[]> {
  let select = selectOrders(db);
  if (query.accountId !== undefined) select = select.where("account_id", "=", query.accountId);
  if (query.status !== undefined) select = select.where("status", "=", query.status);
  if (query.before !== undefined) select = select.where("id", "<", query.before);
  return select.orderBy("id", "desc").limit(query.limit).execute();
}

/** Returns the next receipt number of a locked account. */
export async function nextReceiptNumber(tx: Tx, accountId: string, paidAt: Date): Promise<string> {
  const { count } = await tx.sql
    .selectFrom("crypto_orders")
    .select(sql<number>`count(*)::int`.as("count"))
    .where("account_id", "=", accountId)
    .where("receipt_number", "is not", null)
    .executeTakeFirstOrThrow();
  return `${paidAt.getUTCFullYear()}-${String(count + 1).padStart(6, "0")}`;
}

/** Condition: an order is due for a poll. */
export const ordersAreDue = (now: Date): RawBuilder<SqlBool> =>
  sql`exists (select from crypto_orders where look_at <= ${now})`;

/** Lists up to 100 orders that are due to be polled. */
export function findDueOrders(db: Queryable, now: Date): Promise<{ id: string }[]> {
  return db.sql.selectFrom("crypto_orders").select("id").where("look_at", "<=", now).limit(100).execute();
}

/** Sets when an order is polled next; null: never. */
export function setOrderCheckAt(tx: Tx, id: string, checkAt: Date | null): void {
  tx.send(tx.sql.updateTable("crypto_orders").set({ look_at: checkAt }).where("id", "=", id));
}

/** Deletes quotes that expired before a time. */
export async function deleteQuotesBefore(db: Queryable, before: Date): Promise<void> {
  await db.sql
    .deleteFrom("crypto_orders")
    .where("status", "=", "quoted")
    .where("quote_expires_at", "<", before)
    .execute();
}

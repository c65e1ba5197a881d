import { Counter } from "prom-client";
import type { AuditLog } from "../kernel/call.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { type BillingMailParts, mailManagers, mailOperator } from "./billing-mails.ts";
import { irregularMail, reviewMail } from "./order-mails.ts";
import { changeOrder, isOpenOrder, type OrderRow } from "./order-store.ts";
import type { Irregularity } from "./order-tables.ts";
import { compareDecimals } from "./processors/decimal.ts";
import type { InvoicePayment } from "./processors/greenfield.ts";

export interface OrderPaymentParts extends BillingMailParts, Pick<PlatformParts, "clock" | "log" | "metrics"> {
  readonly audit: AuditLog;
}

/**
 * Saves the amount paid for an order in any status, and returns the order's row. Reports each new irregularity to the
 * managers of the account and to the operator.
 */
export type SavePayment = (tx: Tx, order: OrderRow, payment: InvoicePayment) => Promise<OrderRow>;

/** Returns the irregularity of the amount paid for an order, or null. */
function irregularityOf(order: OrderRow, paid: string): Irregularity | null {
  if (compareDecimals(paid, "0") === 0) return null;
  if (order.status === "paid")
    return compareDecimals(paid, order.crypto_amount_known ?? order.crypto_amount) > 0 ? "too_much" : null;
  if (isOpenOrder(order) || order.status === "quoted") return null;
  // Only payments after the refund need review.
  if (order.failure_reason === "refunded" || order.refunded_at)
    return compareDecimals(paid, order.crypto_amount_paid) > 0 ? "too_late" : null;
  return compareDecimals(paid, order.crypto_amount) < 0 ? "too_little" : "too_late";
}

/** Creates the function that saves payments of orders. */
export function createOrderPayments(parts: OrderPaymentParts): SavePayment {
  const { clock, log, audit } = parts;
  const irregular = new Counter({
    name: "pilothouse_crypto_payments_irregular_total",
    help: "Crypto orders whose payment was too small, too large or too late. An operator reviews each order.",
    labelNames: ["kind"],
    registers: [parts.metrics],
  });

  async function report(tx: Tx, order: OrderRow, irregularity: Irregularity): Promise<void> {
    const { id, account_id: accountId, crypto_amount_paid } = order;
    const data = { irregularity, crypto_amount_paid };
    audit.record(tx, { accountId, actor: { kind: "service" }, action: "crypto_order.irregular", subject: id, data });
    tx.afterCommit(() => irregular.inc({ kind: irregularity }));
    log.warn({ order: id, irregularity }, "irregular payment of a crypto order");
    await mailManagers(parts, tx, accountId, irregularMail(order, irregularity));
    await mailOperator(parts, tx, reviewMail(order, irregularity));
  }

  return async function savePayment(tx, order, { paid, transactionIds }) {
    const irregularity = irregularityOf(order, paid) ?? order.irregularity;
    const isChanged = paid !== order.crypto_amount_paid;
    const isReported = irregularity === order.irregularity;
    if (!isChanged && isReported) return order;
    const row = await changeOrder(tx, order.id, [order.status], {
      crypto_amount_paid: paid,
      transaction_ids: [...transactionIds],
      irregularity,
      // A changed payment needs a new revision of the receipt.
      ...(order.status === "paid" && isChanged && { receipt_revision: order.receipt_revision + 1 }),
      updated_at: new Date(clock.now()),
    });
    if (!row) return order;
    if (irregularity && !isReported) await report(tx, row, irregularity);
    return row;
  };
}

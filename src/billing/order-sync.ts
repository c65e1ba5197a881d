import { lockAccount } from "../accounts/store.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createOrderPayments, type OrderPaymentParts } from "./order-payments.ts";
import { moveOf, moves, type OrderMove } from "./order-states.ts";
import { findAnyOrder, isOpenOrder, type OrderRow, setOrderCheckAt } from "./order-store.ts";
import type { MoveOrder } from "./order-transitions.ts";
import { compareDecimals } from "./processors/decimal.ts";
import type { Invoice, InvoicePayment } from "./processors/greenfield.ts";
import type { CryptoProcessor, Processors } from "./processors.ts";

/** Job kind that fetches the state of an order. One queue partition per order keeps saves in order. */
export const orderJob = { kind: "crypto-order" } as const;

export interface OrderJob {
  /** Whether the operator has returned the payment of an order that is not paid yet. */
  readonly isReturned?: boolean;
}

export interface OrderSyncParts extends OrderPaymentParts, Pick<PlatformParts, "db"> {
  readonly processors: Processors;
  readonly move: MoveOrder;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Milliseconds after expiry until an unpaid order fails, even if the processor has not reported the expiry. */
export const expiryMarginMs = minute;

/**
 * Milliseconds. `open`, `ended`: between polls of an open or an ended order. `until`: polls of an ended order, which
 * detect late payments, stop this long after the order was created.
 */
const checkDelays = { open: 5 * minute, ended: 6 * hour, until: 48 * hour };

const schedule = [second, 5 * second, 30 * second, 2 * minute, 10 * minute];

/** Returns whether the invoice still accepts payments although its order was refunded or cancelled. */
function mustInvalidate({ status, failure_reason }: OrderRow, invoice: Invoice): boolean {
  if (failure_reason === "refunded") return invoice.status === "New" || invoice.status === "Processing";
  return status === "cancelled" && invoice.status === "New";
}

/**
 * Returns the transition that the invoice's status implies. If there is none, an order without a payment expires by our
 * own clock.
 */
function nextMove(order: OrderRow, invoice: Invoice, payment: InvoicePayment, now: number): OrderMove | undefined {
  const implied = moveOf(invoice.status);
  if (implied) return implied;
  const isOver = (order.expires_at?.getTime() ?? Number.POSITIVE_INFINITY) + expiryMarginMs <= now;
  return isOver && compareDecimals(payment.paid, "0") === 0 ? moves.Expired : undefined;
}

/** Returns the time of the next poll; null if the order is not polled again. */
function nextCheck(order: OrderRow, now: number): Date | null {
  if (isOpenOrder(order)) return new Date(now + checkDelays.open);
  return now < order.created_at.getTime() + checkDelays.until ? new Date(now + checkDelays.ended) : null;
}

/** Creates the job kind that polls the processor for the invoices of orders. */
export function createOrderSync(parts: OrderSyncParts): JobKind<OrderJob> {
  const { db, clock, log, processors, move } = parts;
  const savePayment = createOrderPayments(parts);

  async function sync({ greenfield, store }: CryptoProcessor, id: string, { isReturned }: OrderJob): Promise<void> {
    const known = await findAnyOrder(db, id);
    if (!known || known.invoice_id === null) return;
    const invoice = await greenfield.invoice(known.invoice_id);
    if (mustInvalidate(known, invoice)) await greenfield.invalidate(invoice.id);
    const payment = await greenfield.payment(known.invoice_id, known.crypto_currency);
    const isOurs =
      invoice.storeId === store &&
      invoice.currency === known.crypto_currency.toUpperCase() &&
      compareDecimals(invoice.amount, known.crypto_amount) === 0;
    if (!isOurs) {
      log.error({ order: id }, "invoice does not match its order; ignored");
      return;
    }
    await db.transaction(async (tx) => {
      await lockAccount(tx, known.account_id);
      const before = await findAnyOrder(tx, id);
      if (!before) return;
      // The payment is saved before the transition, because the event of the transition reports the amount paid.
      const order = await savePayment(tx, before, payment);
      const wanted = isReturned ? moves.returned : nextMove(order, invoice, payment, clock.now());
      const moved = (wanted && (await move(tx, order, wanted))) ?? order;
      const kept = await savePayment(tx, moved, payment);
      setOrderCheckAt(tx, id, nextCheck(kept, clock.now()));
    });
  }

  return defineJob<OrderJob>({
    ...orderJob,
    width: 1,
    schedule,
    timeout: minute,
    async run({ queue, data }) {
      if (processors.crypto) await sync(processors.crypto, queue, data);
    },
  });
}

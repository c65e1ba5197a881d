import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Counter } from "prom-client";
import { findAccount, lockAccount } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import { CryptoOrderFailedEventSchema, CryptoOrderPaidEventSchema } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import type { AuditLog } from "../kernel/call.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import type { PaidGrant } from "../limits/paid-time.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import { tiers } from "../limits/tiers.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Config } from "../platform/config.ts";
import { counted } from "../platform/counted.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { dayText, type MoneyNews, mailManagers, moneyText, tierText } from "./billing-mails.ts";
import { toFailureMessage } from "./order-message.ts";
import { moveOf, moves, type OrderMove } from "./order-states.ts";
import {
  changeOrder,
  findAnyOrder,
  nextReceiptNumber,
  type OrderChanges,
  type OrderRow,
  openStatuses,
  setOrderCheckAt,
} from "./order-store.ts";
import type { Irregularity, OrderStatus } from "./order-tables.ts";
import { compareDecimals } from "./processors/decimal.ts";
import type { Invoice, InvoicePayment } from "./processors/greenfield.ts";
import type { CryptoProcessor, Processors } from "./processors.ts";

/** Job kind that fetches the state of an order. One queue partition per order keeps saves in order. */
export const orderJob = { kind: "crypto-order" } as const;

export interface OrderJob {
  /** Whether the operator has returned the payment before it settled. */
  readonly isReturned?: boolean;
}

export interface OrderSyncParts extends Pick<PlatformParts, "db" | "clock" | "log" | "metrics"> {
  readonly config: Pick<Config, "smtpUrl" | "embedded" | "operatorEmail">;
  readonly events: EventLog;
  readonly mailer: Mailer;
  readonly audit: AuditLog;
  readonly arrangements: Arrangements;
  readonly processors: Processors;
}

/** Changes the status of orders. Each transition is one transaction with its event, grant and mails. */
export interface Orders {
  /** Runs a transition; undefined if the order is not in one of its source statuses. */
  move(tx: Tx, order: OrderRow, move: OrderMove, changes?: OrderChanges): Promise<OrderRow | undefined>;
  readonly jobKinds: readonly JobKind<unknown>[];
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Milliseconds after expiry until an unpaid order fails, even if the processor has not reported the expiry. */
export const expiryMargin = minute;

/**
 * Milliseconds. `open` and `ended`: between polls of an order. `until`: for which an ended order is polled for late
 * payments.
 */
const checkDelays = { open: 5 * minute, ended: 6 * hour, until: 48 * hour };

const schedule = [second, 5 * second, 30 * second, 2 * minute, 10 * minute];

const isOpen = (status: OrderStatus): boolean => openStatuses.some((open) => open === status);

/** Whether the processor must invalidate the invoice, so that it accepts no further payments. */
function mustInvalidate({ status, failure_reason }: OrderRow, invoice: Invoice): boolean {
  if (failure_reason === "refunded") return invoice.status === "New" || invoice.status === "Processing";
  return status === "cancelled" && invoice.status === "New";
}

/** Returns what is irregular about a payment, or null. */
function irregularityOf(order: OrderRow, paid: string): Irregularity | null {
  if (compareDecimals(paid, "0") === 0) return null;
  if (order.status === "paid")
    return compareDecimals(paid, order.crypto_amount_known ?? order.crypto_amount) > 0 ? "too_much" : null;
  if (isOpen(order.status) || order.status === "quoted") return null;
  // Only payments after the refund need review.
  if (order.failure_reason === "refunded" || order.refunded_at)
    return compareDecimals(paid, order.crypto_amount_paid) > 0 ? "too_late" : null;
  return compareDecimals(paid, order.crypto_amount) < 0 ? "too_little" : "too_late";
}

const irregularWords: Readonly<Record<Irregularity, string>> = {
  too_little: "We received less than the order costs, so the order was not paid.",
  too_much: "We received more than the order costs.",
  too_late: "The payment arrived after the order had ended, so the order was not paid.",
};

const orderText = ({ id, tier, months, amount_cents, currency }: OrderRow): string =>
  `Order ${id} was for ${tierText(tier)}, ${counted(months, "month")}, at ${moneyText(amount_cents, currency)}.`;

/** Creates the order transitions and the job kind that polls the processor. */
export function createOrders(parts: OrderSyncParts): Orders {
  const { db, clock, log, events, mailer, audit, arrangements, processors, config } = parts;
  const canMail = config.smtpUrl !== undefined || config.embedded;
  const ends = new Counter({
    name: "pilothouse_crypto_orders_ended_total",
    help: "Crypto orders that have ended, by state and reason.",
    labelNames: ["status", "reason"],
    registers: [parts.metrics],
  });
  const irregular = new Counter({
    name: "pilothouse_crypto_payments_irregular_total",
    help: "Crypto orders with too little, too much or too late a payment. An operator reviews each.",
    labelNames: ["kind"],
    registers: [parts.metrics],
  });

  const notify = (tx: Tx, accountId: string, news: MoneyNews): Promise<void> =>
    mailManagers(mailer, canMail, tx, accountId, news);

  async function notifyOperator(tx: Tx, order: OrderRow, irregularity: Irregularity): Promise<void> {
    const { id, account_id: accountId, status, crypto_currency: coin } = order;
    if (!canMail || config.operatorEmail === undefined) return;
    const came = `${order.crypto_amount_paid} of ${order.crypto_amount} ${coin.toUpperCase()} received; the order is ${status}.`;
    const lines = [orderText(order), irregularWords[irregularity], came, `Its account is ${accountId}.`];
    const back = order.refund_address === null ? [] : [`A refund goes to ${order.refund_address}.`];
    const subject = `A payment of order ${id} needs review`;
    await mailer.send(tx, { to: config.operatorEmail, kind: "account", subject, lines: [...lines, ...back] });
  }

  async function notifyPaid(tx: Tx, order: OrderRow, paidAt: Date): Promise<void> {
    const { id, account_id: accountId, tier, months, amount_cents, currency } = order;
    const data = create(CryptoOrderPaidEventSchema, {
      orderId: id,
      tier: toTierMessage(tier),
      months,
      amountCents: amount_cents,
      currency,
      cryptoCurrency: order.crypto_currency,
      cryptoAmountPaid: order.crypto_amount_paid,
      paidAt: timestampFromDate(paidAt),
      livemode: order.livemode,
    });
    await events.append(tx, { accountId, subject: id }, CryptoOrderPaidEventSchema, data);
    // The mail has no link: a browser would open the receipt without an API key.
    const receipt = `To get receipt ${order.receipt_number}, open Billing in the console.`;
    const lines = [orderText(order), `It was paid on ${dayText(paidAt)}. ${receipt}`];
    await notify(tx, accountId, { subject: "Your order is paid", lines });
  }

  async function notifyFailed(tx: Tx, order: OrderRow, now: Date): Promise<void> {
    const { id, account_id: accountId, failure_reason: reason, livemode } = order;
    if (!reason) return;
    const data = create(CryptoOrderFailedEventSchema, {
      orderId: id,
      failureReason: toFailureMessage(reason),
      livemode,
      failedAt: timestampFromDate(now),
      cryptoCurrency: order.crypto_currency,
      cryptoAmountPaid: order.crypto_amount_paid,
    });
    await events.append(tx, { accountId, subject: id }, CryptoOrderFailedEventSchema, data);
    const why = {
      expired: "It was not paid in time.",
      processor_failed: "The payment has failed.",
      refunded: "The payment was returned.",
    };
    await notify(tx, accountId, { subject: "Your order was not paid", lines: [orderText(order), why[reason]] });
  }

  /** Adds the prepaid months of a paid order as a grant. */
  async function grant(tx: Tx, order: OrderRow, at: number): Promise<void> {
    const { id, tier, months, sandbox } = order;
    const fresh = { leftMs: null, runningSince: null, until: null, endedAt: null } as const;
    const block: PaidGrant = { id, kind: "block", tier: tiers.get(tier).name, months, createdAt: at, ...fresh };
    await arrangements.serve(tx, order.account_id, {
      sandbox,
      apply: (time) => ({ ...time, grants: [...time.grants.filter((other) => other.id !== id), block] }),
    });
  }

  async function move(tx: Tx, order: OrderRow, { from, to, failure }: OrderMove, changes: OrderChanges = {}) {
    const { id, account_id: accountId } = order;
    const now = new Date(clock.now());
    const paid =
      to === "paid"
        ? {
            paid_at: now,
            receipt_number: await nextReceiptNumber(tx, accountId, now),
            buyer: (await findAccount(tx, accountId)).name,
          }
        : {};
    const reason = failure ?? null;
    const moved = { ...changes, ...paid, status: to, failure_reason: reason, updated_at: now };
    const row = await changeOrder(tx, id, from, moved);
    if (!row) return undefined;
    if (isOpen(to)) return row;
    tx.afterCommit(() => ends.inc({ status: to, reason: reason ?? "" }));
    // A cancellation is audited by the method that the client calls.
    if (to !== "cancelled") {
      const data = { status: to, crypto_amount_paid: row.crypto_amount_paid, ...(failure && { reason: failure }) };
      audit.record(tx, { accountId, actor: { kind: "service" }, action: `crypto_order.${to}`, subject: id, data });
    }
    if (to === "paid") {
      await grant(tx, row, now.getTime());
      await notifyPaid(tx, row, now);
    }
    if (to === "failed") await notifyFailed(tx, row, now);
    return row;
  }

  /** Saves the payment, whatever the status of the order, and reports an irregularity once. */
  async function keepPayment(tx: Tx, order: OrderRow, { paid, transactionIds }: InvoicePayment): Promise<OrderRow> {
    const irregularity = irregularityOf(order, paid) ?? order.irregularity;
    const isNew = paid !== order.crypto_amount_paid || irregularity !== order.irregularity;
    if (!isNew) return order;
    const changes = {
      crypto_amount_paid: paid,
      transaction_ids: [...transactionIds],
      irregularity,
      // A changed payment needs a new revision of the receipt.
      ...(order.status === "paid" &&
        paid !== order.crypto_amount_paid && { receipt_revision: order.receipt_revision + 1 }),
    };
    const row = await changeOrder(tx, order.id, [order.status], { ...changes, updated_at: new Date(clock.now()) });
    if (!row) return order;
    if (irregularity && irregularity !== order.irregularity) {
      const { id, account_id: accountId, crypto_currency: coin } = row;
      const data = { irregularity, crypto_amount_paid: paid };
      audit.record(tx, { accountId, actor: { kind: "service" }, action: "crypto_order.irregular", subject: id, data });
      tx.afterCommit(() => irregular.inc({ kind: irregularity }));
      log.warn({ order: id, irregularity }, "irregular payment of a crypto order");
      const lines = [
        orderText(row),
        irregularWords[irregularity],
        `${paid} ${coin.toUpperCase()} was received. We will review the payment.`,
      ];
      await notify(tx, accountId, { subject: "A payment needs review", lines });
      await notifyOperator(tx, row, irregularity);
    }
    return row;
  }

  /** The transition that the invoice's status implies, or else expiry by our own clock. */
  function nextMove(order: OrderRow, invoice: Invoice, payment: InvoicePayment): OrderMove | undefined {
    const said = moveOf(invoice.status);
    if (said) return said;
    const isOver = (order.expires_at?.getTime() ?? Number.POSITIVE_INFINITY) + expiryMargin <= clock.now();
    return isOver && compareDecimals(payment.paid, "0") === 0 ? moves.Expired : undefined;
  }

  function nextCheck({ status, created_at }: OrderRow): Date | null {
    const now = clock.now();
    if (isOpen(status)) return new Date(now + checkDelays.open);
    return now < created_at.getTime() + checkDelays.until ? new Date(now + checkDelays.ended) : null;
  }

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
      // The payment is saved first, because the event of the transition reports it.
      const order = await keepPayment(tx, before, payment);
      const wanted = isReturned ? moves.returned : nextMove(order, invoice, payment);
      const moved = (wanted && (await move(tx, order, wanted))) ?? order;
      const kept = await keepPayment(tx, moved, payment);
      setOrderCheckAt(tx, id, nextCheck(kept));
    });
  }

  const kind = defineJob<OrderJob>({
    ...orderJob,
    width: 1,
    schedule,
    timeout: minute,
    async run({ queue, data }) {
      if (processors.crypto) await sync(processors.crypto, queue, data);
    },
  });
  // Cast: job kinds with different data types share the list.
  return { move, jobKinds: [kind as JobKind<unknown>] };
}

import { counted } from "../platform/counted.ts";
import { type BillingMail, dayText, moneyText, tierText } from "./billing-mails.ts";
import type { OrderRow } from "./order-store.ts";
import type { Irregularity, OrderFailure } from "./order-tables.ts";

const irregularWords: Readonly<Record<Irregularity, string>> = {
  too_little: "We received less than the order costs, so the order was not paid.",
  too_much: "We received more than the order costs.",
  too_late: "The payment arrived after the order had ended, so the order was not paid.",
};

const failureWords: Readonly<Record<OrderFailure, string>> = {
  expired: "It was not paid in time.",
  processor_failed: "The payment has failed.",
  refunded: "The payment was returned.",
};

const orderText = ({ id, tier, months, amount_cents, currency }: OrderRow): string =>
  `Order ${id} was for ${tierText(tier)}, ${counted(months, "month")}, at ${moneyText(amount_cents, currency)}.`;

/** E-mail about a paid order. A link to the receipt would not work, because a browser sends no API key. */
export function paidMail(order: OrderRow, paidAt: Date): BillingMail {
  const receipt = `To get receipt ${order.receipt_number}, open Billing in the console.`;
  const lines = [orderText(order), `It was paid on ${dayText(paidAt)}. ${receipt}`];
  return { subject: "Your order is paid", lines };
}

export function failedMail(order: OrderRow, reason: OrderFailure): BillingMail {
  return { subject: "Your order was not paid", lines: [orderText(order), failureWords[reason]] };
}

/** E-mail about an irregular payment, for the managers of the account. */
export function irregularMail(order: OrderRow, irregularity: Irregularity): BillingMail {
  const received = `${order.crypto_amount_paid} ${order.crypto_currency.toUpperCase()} was received. We will review the payment.`;
  return { subject: "A payment needs review", lines: [orderText(order), irregularWords[irregularity], received] };
}

/** E-mail about an irregular payment, for the operator. */
export function reviewMail(order: OrderRow, irregularity: Irregularity): BillingMail {
  const { id, account_id: accountId, status, crypto_currency: coin } = order;
  const received = `${order.crypto_amount_paid} of ${order.crypto_amount} ${coin.toUpperCase()} received; the order is ${status}.`;
  const lines = [orderText(order), irregularWords[irregularity], received, `Its account is ${accountId}.`];
  const back = order.refund_address === null ? [] : [`A refund goes to ${order.refund_address}.`];
  return { subject: `A payment of order ${id} needs review`, lines: [...lines, ...back] };
}

import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CryptoOrder,
  CryptoOrderFailureReason,
  CryptoOrderSchema,
  CryptoOrderStatus,
} from "../gen/pilothouse/v1/crypto_order_pb.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import type { OrderRow } from "./order-store.ts";

/** Converts order statuses between rows and messages. */
export const orderStatusNames = storedNames(CryptoOrderStatus);
const failureNames = storedNames(CryptoOrderFailureReason);

export const toFailureMessage = failureNames.toMessage;

export function toOrderMessage(row: OrderRow): CryptoOrder {
  return create(CryptoOrderSchema, {
    id: row.id,
    status: orderStatusNames.toMessage(row.status),
    tier: toTierMessage(row.tier),
    months: row.months,
    ...(row.failure_reason && { failureReason: failureNames.toMessage(row.failure_reason) }),
    amountCents: row.amount_cents,
    currency: row.currency,
    cryptoCurrency: row.crypto_currency,
    cryptoAmount: row.crypto_amount,
    cryptoAmountPaid: row.crypto_amount_paid,
    exchangeRate: row.exchange_rate,
    ...(row.quote_expires_at && { quoteExpiresAt: timestampFromDate(row.quote_expires_at) }),
    ...(row.payment_address !== null && { paymentAddress: row.payment_address }),
    ...(row.payment_uri !== null && { paymentUri: row.payment_uri }),
    ...(row.checkout_url !== null && { checkoutUrl: row.checkout_url }),
    ...(row.expires_at && { expiresAt: timestampFromDate(row.expires_at) }),
    ...(row.refund_address !== null && { refundAddress: row.refund_address }),
    ...(row.note !== null && { note: row.note }),
    invoiceLines: row.invoice_lines,
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    ...(row.paid_at && { paidAt: timestampFromDate(row.paid_at) }),
    ...(row.refunded_at && { refundedAt: timestampFromDate(row.refunded_at), refundedCents: row.refunded_cents }),
    livemode: row.livemode,
  });
}

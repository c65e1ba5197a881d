import type { OrderFailure, OrderStatus } from "./order-tables.ts";
import type { Invoice } from "./processors/greenfield.ts";

export interface OrderMove {
  readonly from: readonly OrderStatus[];
  readonly to: OrderStatus;
  readonly failure?: OrderFailure;
}

/**
 * Transitions by trigger, except `quoted` to `awaiting_payment`, which a checkout makes. Capitalised triggers are
 * invoice statuses of BTCPay Server. A trigger has no effect on orders in other statuses than `from`.
 */
export const moves = {
  /** The processor has detected the full payment, which does not have enough confirmations yet. */
  Processing: { from: ["awaiting_payment"], to: "confirming" },
  Settled: { from: ["awaiting_payment", "confirming"], to: "paid" },
  Expired: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "expired" },
  Invalid: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "processor_failed" },
  /** The operator returned the payment of an order that was not paid yet. */
  returned: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "refunded" },
  /** The client cancelled the order. */
  cancel: { from: ["quoted", "awaiting_payment"], to: "cancelled" },
} as const satisfies Record<string, OrderMove>;

/** Returns the transition that an invoice's status implies; undefined for `New`. */
export function moveOf(status: Invoice["status"]): OrderMove | undefined {
  return status === "New" ? undefined : moves[status];
}

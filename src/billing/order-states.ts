import type { OrderFailure, OrderStatus } from "./order-tables.ts";
import type { Invoice } from "./processors/greenfield.ts";

/** What an order becomes. */
export interface OrderMove {
  readonly from: readonly OrderStatus[];
  readonly to: OrderStatus;
  readonly failure?: OrderFailure;
}

/** Every move of an order but that from `quoted` to `awaiting_payment`, by its trigger. A move from another state changes nothing. */
export const moves = {
  /** The processor has seen a payment of all of it. */
  Processing: { from: ["awaiting_payment"], to: "confirming" },
  Settled: { from: ["awaiting_payment", "confirming"], to: "paid" },
  Expired: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "expired" },
  Invalid: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "processor_failed" },
  /** The operator has returned what was paid, before it was settled. */
  returned: { from: ["awaiting_payment", "confirming"], to: "failed", failure: "refunded" },
  /** The client wants it no more. */
  cancel: { from: ["quoted", "awaiting_payment"], to: "cancelled" },
} as const satisfies Record<string, OrderMove>;

/** The move that an invoice asks for. */
export function moveOf(status: Invoice["status"]): OrderMove | undefined {
  return status === "New" ? undefined : moves[status];
}

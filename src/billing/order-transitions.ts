import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Counter } from "prom-client";
import { findAccount } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import { CryptoOrderFailedEventSchema, CryptoOrderPaidEventSchema } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import type { AuditLog } from "../kernel/call.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import type { PaidGrant } from "../limits/paid-time.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import { tiers } from "../limits/tiers.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { type BillingMailParts, mailManagers } from "./billing-mails.ts";
import { failedMail, paidMail } from "./order-mails.ts";
import { toFailureMessage } from "./order-message.ts";
import type { OrderMove } from "./order-states.ts";
import { changeOrder, isOpenOrder, nextReceiptNumber, type OrderRow } from "./order-store.ts";

export interface OrderTransitionParts extends BillingMailParts, Pick<PlatformParts, "clock" | "metrics"> {
  readonly events: EventLog;
  readonly audit: AuditLog;
  readonly arrangements: Arrangements;
}

/**
 * Changes the status of an order, and adds the event, grant and e-mails to the same transaction. Resolves with
 * undefined if `from` does not include the order's status.
 */
export type MoveOrder = (tx: Tx, order: OrderRow, move: OrderMove) => Promise<OrderRow | undefined>;

async function notifyPaid(parts: OrderTransitionParts, tx: Tx, order: OrderRow, paidAt: Date): Promise<void> {
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
  await parts.events.append(tx, { accountId, subject: id }, CryptoOrderPaidEventSchema, data);
  await mailManagers(parts, tx, accountId, paidMail(order, paidAt));
}

async function notifyFailed(parts: OrderTransitionParts, tx: Tx, order: OrderRow, now: Date): Promise<void> {
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
  await parts.events.append(tx, { accountId, subject: id }, CryptoOrderFailedEventSchema, data);
  await mailManagers(parts, tx, accountId, failedMail(order, reason));
}

/** Adds the prepaid months of a paid order as a grant. */
async function grant(arrangements: Arrangements, tx: Tx, order: OrderRow, at: number): Promise<void> {
  const { id, tier, months, sandbox } = order;
  const fresh = { leftMs: null, runningSince: null, until: null, endedAt: null } as const;
  const block: PaidGrant = { id, kind: "block", tier: tiers.get(tier).name, months, createdAt: at, ...fresh };
  await arrangements.updateGrants(tx, order.account_id, {
    sandbox,
    apply: (time) => ({ ...time, grants: [...time.grants.filter((other) => other.id !== id), block] }),
  });
}

/** Creates the function that changes the status of orders. */
export function createOrderTransitions(parts: OrderTransitionParts): MoveOrder {
  const { clock, audit, arrangements } = parts;
  const ends = new Counter({
    name: "pilothouse_crypto_orders_ended_total",
    help: "Crypto orders that have ended, by state and reason.",
    labelNames: ["status", "reason"],
    registers: [parts.metrics],
  });

  return async function move(tx, { id, account_id: accountId }, { from, to, failure }) {
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
    const row = await changeOrder(tx, id, from, { ...paid, status: to, failure_reason: reason, updated_at: now });
    if (!row || isOpenOrder(row)) return row;
    tx.afterCommit(() => ends.inc({ status: to, reason: reason ?? "" }));
    // A cancellation is audited by the method that the client calls.
    if (to !== "cancelled") {
      const data = { status: to, crypto_amount_paid: row.crypto_amount_paid, ...(failure && { reason: failure }) };
      audit.record(tx, { accountId, actor: { kind: "service" }, action: `crypto_order.${to}`, subject: id, data });
    }
    if (to === "paid") {
      await grant(arrangements, tx, row, now.getTime());
      await notifyPaid(parts, tx, row, now);
    }
    if (to === "failed") await notifyFailed(parts, tx, row, now);
    return row;
  };
}

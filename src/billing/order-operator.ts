import { lockAccount } from "../accounts/store.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { AuditLog, AuditRecord } from "../kernel/call.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import { endGrant, type PaidGrant } from "../limits/paid-time.ts";
import type { Clock } from "../platform/clock.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { StartRefused } from "../platform/start-refused.ts";
import { moves } from "./order-states.ts";
import { changeOrder, findAnyOrder, isOpenOrder, type OrderRow } from "./order-store.ts";
import { type OrderJob, orderJob } from "./order-sync.ts";
import { compareDecimals } from "./processors/decimal.ts";

const aDay = 86_400_000;

export interface OrderOperatorParts {
  readonly clock: Clock;
  readonly audit: AuditLog;
  readonly arrangements: Arrangements;
}

async function needOrder(db: Queryable, id: string): Promise<OrderRow> {
  const order = await findAnyOrder(db, id);
  if (!order) throw new StartRefused(`order ${id} does not exist`);
  return order;
}

async function lockOrder(tx: Tx, id: string): Promise<OrderRow> {
  const { account_id: accountId } = await needOrder(tx, id);
  await lockAccount(tx, accountId);
  return needOrder(tx, id);
}

const recordOf = ({ id, account_id: accountId }: OrderRow, verb: string): Omit<AuditRecord, "data"> => ({
  accountId,
  actor: { kind: "operator" },
  action: `crypto_order.${verb}`,
  subject: id,
});

/**
 * Records that the operator returned the payment of an open order. A job of a gateway then fails the order, and sends
 * the event and e-mails. Returns false if the order is not open. Throws `StartRefused` if the order does not exist or
 * has received no payment.
 */
export async function returnPayment(
  tx: Tx,
  { audit, jobQueues }: Pick<OrderOperatorParts, "audit"> & { readonly jobQueues: JobQueues },
  id: string,
): Promise<boolean> {
  const order = await lockOrder(tx, id);
  if (!isOpenOrder(order)) return false;
  if (compareDecimals(order.crypto_amount_paid, "0") === 0) throw new StartRefused(`${id} has received no payment`);
  audit.record(tx, { ...recordOf(order, "refund"), data: { crypto_amount_paid: order.crypto_amount_paid } });
  const data: OrderJob = { isReturned: true };
  jobQueues.enqueueAll(tx, orderJob, [
    { queue: id, data },
    { queue: id, data: {} },
  ]);
  return true;
}

/**
 * Records that the operator returned the payment of a failed or cancelled order. Returns false for an order in another
 * status. Throws `StartRefused` if the order does not exist or no payment is left to return.
 */
export async function returnLeftover(
  tx: Tx,
  { clock, audit }: Pick<OrderOperatorParts, "clock" | "audit">,
  id: string,
): Promise<boolean> {
  const order = await lockOrder(tx, id);
  if (order.status !== "failed" && order.status !== "cancelled") return false;
  if (order.irregularity === null) throw new StartRefused(`${id} has no payment left to return`);
  const now = new Date(clock.now());
  // The irregularity is cleared, so that a later payment is reviewed too.
  await changeOrder(tx, id, [order.status], { refunded_at: now, irregularity: null, updated_at: now });
  audit.record(tx, { ...recordOf(order, "refund"), data: { crypto_amount_paid: order.crypto_amount_paid } });
  return true;
}

/**
 * Records that the operator returned the excess payment of a paid order, which stays paid. Throws `StartRefused` if the
 * order does not exist or has no excess payment.
 */
export async function returnExcess(
  tx: Tx,
  { clock, audit }: Pick<OrderOperatorParts, "clock" | "audit">,
  id: string,
): Promise<void> {
  const order = await lockOrder(tx, id);
  if (order.status !== "paid" || order.irregularity !== "too_much")
    throw new StartRefused(`${id} has no excess payment left to return`);
  const { crypto_amount_paid } = order;
  const changes = { crypto_amount_known: crypto_amount_paid, irregularity: null };
  await changeOrder(tx, id, [order.status], { ...changes, updated_at: new Date(clock.now()) });
  audit.record(tx, { ...recordOf(order, "return_excess"), data: { crypto_amount_paid } });
}

/**
 * Records the refund of a paid order, and ends its prepaid months. Returns the refunded cents. Throws `StartRefused` if
 * the order does not exist, is not paid or is already refunded, or if `cents` is less than 1 or exceeds the price.
 */
export async function refundOrder(
  tx: Tx,
  { clock, audit, arrangements }: OrderOperatorParts,
  { id, cents }: { readonly id: string; readonly cents?: number | undefined },
): Promise<number> {
  const order = await lockOrder(tx, id);
  const amount = cents ?? order.amount_cents;
  if (!(amount >= 1 && amount <= order.amount_cents))
    throw new StartRefused(`--cents accepts a whole number from 1 to ${order.amount_cents}`);
  if (order.status !== "paid") throw new StartRefused(`${id} is ${order.status}: only paid orders can be refunded`);
  if (order.refunded_at) throw new StartRefused(`${id} is already refunded`);
  const now = new Date(clock.now());
  const receipt_revision = order.receipt_revision + 1;
  const changes = { refunded_at: now, refunded_cents: amount, updated_at: now, receipt_revision };
  await changeOrder(tx, id, [moves.Settled.to], changes);
  await arrangements.updateGrants(tx, order.account_id, {
    sandbox: order.sandbox,
    apply: (time) => endGrant(time, id, now.getTime()),
  });
  audit.record(tx, { ...recordOf(order, "refund"), data: { refunded_cents: amount } });
  return amount;
}

/**
 * Adds days to the prepaid time that an order has left. Throws `StartRefused` if the order does not exist, has no time
 * left, or has prepaid time that has not started.
 */
export async function extendOrder(
  tx: Tx,
  { audit, arrangements }: OrderOperatorParts,
  { id, days }: { readonly id: string; readonly days: number },
): Promise<void> {
  const order = await lockOrder(tx, id);
  const lengthen = (grant: PaidGrant): PaidGrant =>
    grant.id === id ? { ...grant, leftMs: (grant.leftMs ?? 0) + days * aDay } : grant;
  const known = await arrangements.updateGrants(tx, order.account_id);
  const block = known.find((grant) => grant.id === id && grant.endedAt === null);
  if (!block) throw new StartRefused(`${id} has no months left`);
  if (block.leftMs === null)
    throw new StartRefused(`the months of ${id} have not started: extend the order after they start`);
  await arrangements.updateGrants(tx, order.account_id, {
    sandbox: order.sandbox,
    apply: (time) => ({ ...time, grants: time.grants.map(lengthen) }),
  });
  audit.record(tx, { ...recordOf(order, "extend"), data: { days } });
}

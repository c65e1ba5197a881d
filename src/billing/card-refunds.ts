import type { Database } from "../platform/postgres/database.ts";
import { isLive, subscriptionStatus } from "./card-subscriptions.ts";
import type { CardProcessor } from "./processors.ts";
import { type Customer, listSubscriptions } from "./store.ts";

/**
 * Returns the identifiers of refunded or disputed charges among the last 100 of a customer. Returns none if the account
 * has no live subscription.
 */
export async function listReturnedCharges(
  db: Database,
  { client, isSandbox }: CardProcessor,
  { id, account_id }: Customer,
) {
  const known = await listSubscriptions(db, account_id, isSandbox);
  if (!known.some(isLive)) return [];
  const { data } = await client.charges.list({ customer: id, limit: 100 });
  return data.filter(({ refunded, disputed }) => refunded || disputed).map((charge) => charge.id);
}

/** Cancels the subscription of a charge that was refunded in full or lost in a dispute. Ignores other charges. */
export async function cancelForReturnedCharge(
  { client }: CardProcessor,
  customerId: string,
  chargeId: string,
): Promise<void> {
  const charge = await client.charges.retrieve(chargeId);
  const disputes = charge.disputed ? await client.disputes.list({ charge: chargeId, limit: 10 }) : undefined;
  const isLost = disputes?.data.some(({ status }) => status === "lost") ?? false;
  if (charge.customer !== customerId || !(charge.refunded || isLost) || typeof charge.payment_intent !== "string")
    return;
  const payment = { type: "payment_intent", payment_intent: charge.payment_intent } as const;
  const [paid] = (await client.invoicePayments.list({ payment, limit: 1 })).data;
  if (typeof paid?.invoice !== "string") return;
  const invoice = await client.invoices.retrieve(paid.invoice);
  const subscription = invoice.parent?.subscription_details?.subscription;
  if (typeof subscription !== "string") return;
  const { data } = await client.subscriptions.list({ customer: customerId, status: "all", limit: 100 });
  const found = data.find(({ id }) => id === subscription);
  if (found && subscriptionStatus(found) !== "ended") await client.subscriptions.cancel(subscription);
}

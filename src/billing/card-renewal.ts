import type Stripe from "stripe";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { subscriptionStatus } from "./card-subscriptions.ts";
import type { CardProcessor } from "./processors.ts";
import { closeCheckout, listOpenCheckouts } from "./store.ts";

/**
 * Metadata key of subscriptions cancelled because their account was deleted. Subscriptions that a user cancelled lack
 * the key, and stay cancelled when the account is restored.
 */
const stoppedKey = "pilothouse_stopped";

export const listCardSubscriptions = ({ client }: CardProcessor, customer: string) =>
  client.subscriptions.list({ customer, status: "all", limit: 100, expand: ["data.latest_invoice"] });

/**
 * Stops payments of a deleted account. Open checkouts expire, active subscriptions end with their paid period, and
 * unpaid subscriptions end now.
 */
export async function stopRenewal(
  { db, clock }: Pick<PlatformParts, "db" | "clock">,
  card: CardProcessor,
  customerId: string,
): Promise<void> {
  const { checkout, subscriptions, subscriptionSchedules } = card.client;
  for (const open of await listOpenCheckouts(db, customerId, new Date(clock.now()))) {
    await checkout.sessions.expire(open).catch(unlessOver);
    await closeCheckout(db, open);
  }
  for (const found of (await listCardSubscriptions(card, customerId)).data) {
    const { id, schedule } = found;
    const status = subscriptionStatus(found);
    if (status === "cancelling" || found.status === "canceled" || found.status === "incomplete_expired") continue;
    // A schedule of future changes blocks updates of the subscription.
    if (schedule) await subscriptionSchedules.release(typeof schedule === "string" ? schedule : schedule.id);
    if (status === "active")
      await subscriptions.update(id, { cancel_at_period_end: true, metadata: { [stoppedKey]: "true" } });
    else await subscriptions.cancel(id);
  }
}

/** Ignores the error for a checkout that was completed or has expired. Throws other errors. */
function unlessOver(error: unknown): void {
  if (!(error instanceof Error && "statusCode" in error && error.statusCode === 400)) throw error;
}

/**
 * Resumes renewal of subscriptions that the deletion of the account stopped. Returns whether there were such
 * subscriptions.
 */
export async function resumeRenewal(
  { client }: CardProcessor,
  found: readonly Stripe.Subscription[],
): Promise<boolean> {
  const stopped = found.filter((each) => subscriptionStatus(each) === "cancelling" && each.metadata?.[stoppedKey]);
  for (const { id } of stopped)
    await client.subscriptions.update(id, { cancel_at_period_end: false, metadata: { [stoppedKey]: "" } });
  return stopped.length > 0;
}

import type Stripe from "stripe";
import { endGrant, type PaidGrant, type PaidTime } from "../limits/paid-time.ts";
import { tiers } from "../limits/tiers.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { CardProcessor } from "./processors.ts";
import type { CardPrice, Customer, SubscriptionRow } from "./store.ts";

const second = 1_000;
const day = 86_400 * second;

/** Milliseconds for which a subscription keeps its tier after a failed payment. */
const pastDueFor = 14 * day;

export const isLive = ({ status }: SubscriptionRow): boolean => status !== "ended";

const rankOf = (tier: string): number => tiers.names.indexOf(tiers.get(tier).name);

/** Returns the status of a processor's subscription; undefined if the subscription was never paid. */
export function subscriptionStatus({
  status,
  cancel_at_period_end,
  cancel_at,
}: Stripe.Subscription): SubscriptionRow["status"] | undefined {
  if (status === "active" || status === "trialing") return cancel_at_period_end || cancel_at ? "cancelling" : "active";
  if (status === "past_due") return "past_due";
  return status === "incomplete" || status === "incomplete_expired" ? undefined : "ended";
}

/** Returns whether an upgrade is unpaid. The tier changes only when the invoice of the upgrade is paid. */
function isUnpaidUpgrade(
  { latest_invoice: invoice }: Stripe.Subscription,
  price: CardPrice | undefined,
  before: SubscriptionRow,
): boolean {
  const isUpgrade = price !== undefined && rankOf(price.tier) > rankOf(before.tier) && before.status !== "ended";
  return isUpgrade && typeof invoice === "object" && invoice !== null && invoice.status !== "paid";
}

/** Stored data: the customer of a subscription, all prices of the service, and the subscription's last saved row. */
interface KnownSubscription {
  readonly owner: Customer;
  readonly prices: readonly CardPrice[];
  readonly before: SubscriptionRow | undefined;
}

/**
 * Converts a processor's subscription to a row. Returns undefined if the subscription was never paid or has another
 * customer, mode or price than this service knows.
 */
export function toSubscriptionRow(
  { clock, log }: Pick<PlatformParts, "clock" | "log">,
  { livemode, isSandbox }: CardProcessor,
  found: Stripe.Subscription,
  { owner, prices, before }: KnownSubscription,
): SubscriptionRow | undefined {
  const status = subscriptionStatus(found);
  const item = found.items.data[0];
  const named = prices.find(({ id }) => id === item?.price.id);
  if (!status || !item || found.customer !== owner.id || found.livemode !== livemode) return undefined;
  // A subscription that ended or has an unpaid upgrade keeps its stored price.
  const keepsPrice = before && (status === "ended" || isUnpaidUpgrade(found, named, before));
  const price = keepsPrice ? before : named;
  if (
    !price ||
    (price === named && (item.price.unit_amount !== price.amount_cents || item.price.currency !== price.currency))
  ) {
    log.warn({ subscription: found.id }, "subscription has an unknown price; ignored");
    return undefined;
  }
  const now = new Date(clock.now());
  const { tier, interval, amount_cents, currency } = price;
  return {
    id: found.id,
    account_id: owner.account_id,
    customer_id: owner.id,
    status,
    tier,
    interval,
    amount_cents,
    currency,
    livemode,
    sandbox: isSandbox,
    period_started_at: new Date(item.current_period_start * second),
    period_ends_at: new Date(item.current_period_end * second),
    past_due_since: status === "past_due" ? (before?.past_due_since ?? now) : null,
    created_at: before?.created_at ?? now,
    updated_at: now,
  };
}

/** Adds, updates or ends the grant of a subscription. */
export function applySubscription(time: PaidTime, row: SubscriptionRow, now: number): PaidTime {
  const { id, status, tier, past_due_since: since, created_at } = row;
  if (status === "ended") return endGrant(time, id, now);
  const until = since ? since.getTime() + pastDueFor : null;
  const known = time.grants.find((grant) => grant.id === id);
  const made = { id, kind: "card", months: 0, leftMs: null, runningSince: null, endedAt: null } as const;
  const grant: PaidGrant = { ...made, createdAt: created_at.getTime(), ...known, tier: tiers.get(tier).name, until };
  return { ...time, grants: [...time.grants.filter((other) => other.id !== id), grant] };
}

import { Counter } from "prom-client";
import type Stripe from "stripe";
import { isDeleted, lockAccount } from "../accounts/store.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { AuditLog } from "../kernel/call.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import { endGrant, type PaidGrant, type PaidTime } from "../limits/paid-time.ts";
import { tiers } from "../limits/tiers.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { type BillingMailParts, dayText, type MoneyNews, mailManagers, moneyText, tierText } from "./billing-mails.ts";
import type { CardProcessor, Processors } from "./processors.ts";
import {
  type CardPrice,
  closeCheckout,
  findOwner,
  listCustomers,
  listOpenCheckouts,
  listPrices,
  listSubscriptions,
  type SubscriptionRow,
  saveSubscription,
} from "./store.ts";

/** Job kind that fetches the state of a card customer. One queue partition per customer keeps saves in order. */
export const cardJob = { kind: "card-customer" } as const;

export interface CardJob {
  /** A refunded or disputed charge, which may end a subscription. */
  readonly charge?: string;
  /** Whether to search for refunded and disputed charges, in case a webhook was lost. */
  readonly reconciles?: boolean;
}

export interface CardSyncParts extends BillingMailParts, Pick<PlatformParts, "db" | "clock" | "log" | "metrics"> {
  readonly audit: AuditLog;
  readonly arrangements: Arrangements;
  readonly processors: Processors;
}

const second = 1_000;
const minute = 60 * second;
const day = 1_440 * minute;

/** Milliseconds for which a subscription keeps its tier after a failed payment. */
const pastDueFor = 14 * day;

/** Retries while the processor is unreachable. Longer outages are covered by the daily reconciliation. */
const schedule = [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 60 * minute];

type Status = SubscriptionRow["status"];

const rankOf = (tier: string): number => tiers.names.indexOf(tiers.get(tier).name);

/** Status of a subscription by the processor's data; undefined if the subscription was never paid. */
function statusOf({ status, cancel_at_period_end, cancel_at }: Stripe.Subscription): Status | undefined {
  if (status === "active" || status === "trialing") return cancel_at_period_end || cancel_at ? "cancelling" : "active";
  if (status === "past_due") return "past_due";
  return status === "incomplete" || status === "incomplete_expired" ? undefined : "ended";
}

/** Whether an upgrade is still unpaid. The tier changes only when its invoice is paid. */
function isUnpaidRaise(
  { latest_invoice: invoice }: Stripe.Subscription,
  price: CardPrice | undefined,
  before: SubscriptionRow,
): boolean {
  const isRaise = price !== undefined && rankOf(price.tier) > rankOf(before.tier) && before.status !== "ended";
  return isRaise && typeof invoice === "object" && invoice !== null && invoice.status !== "paid";
}

const isSame = (left: SubscriptionRow, right: SubscriptionRow): boolean =>
  left.status === right.status &&
  left.tier === right.tier &&
  left.interval === right.interval &&
  left.amount_cents === right.amount_cents &&
  left.period_ends_at.getTime() === right.period_ends_at.getTime();

/** Mail subjects for a subscription that became active, by previous status. */
const activeSubjects: Readonly<Partial<Record<Status, string>>> = {
  past_due: "We have received your payment",
  cancelling: "Your subscription continues",
};

/** Mail about a change of a subscription; undefined if there is nothing to report. */
function newsOf(before: SubscriptionRow | undefined, now: SubscriptionRow): MoneyNews | undefined {
  const [tier, until] = [tierText(now.tier), dayText(now.period_ends_at)];
  const cost = `${moneyText(now.amount_cents, now.currency)} a ${now.interval}`;
  if (now.status === before?.status) {
    if (now.tier !== before.tier)
      return {
        subject: "Your subscription has changed",
        lines: [`Your plan is now ${tier}. It costs ${cost} and is paid until ${until}.`],
      };
    if (now.period_ends_at <= before.period_ends_at) return undefined;
    const lines = [`We have received your payment of ${cost} for ${tier}. The subscription is paid until ${until}.`];
    return { subject: "We have received your payment", lines };
  }
  switch (now.status) {
    case "past_due":
      return {
        subject: "A payment has failed",
        lines: [
          `Your card was declined for ${tier}, ${cost}. We will try again. You keep ${tier} for 14 days.`,
          "To use another card, open Billing in the console.",
        ],
      };
    case "ended":
      return before && { subject: "Your subscription has ended", lines: [`Your subscription to ${tier} has ended.`] };
    case "cancelling":
      return {
        subject: "Your subscription will end",
        lines: [`Your subscription to ${tier} is paid until ${until}. It ends then.`],
      };
    case "active":
      return {
        subject: (before && activeSubjects[before.status]) ?? "You have subscribed",
        lines: [`${tier} costs ${cost} and is paid until ${until}.`],
      };
  }
}

/**
 * Metadata key that marks subscriptions cancelled because their account was deleted. Subscriptions that the user
 * cancelled lack the key, and stay cancelled.
 */
const stopMark = "pilothouse_stopped";

/**
 * Schedules a sync with the card processor after an account was deleted or restored: deletion stops renewals, restoring
 * resumes them.
 */
export async function followDeletion(tx: Tx, jobQueues: JobQueues, accountId: string): Promise<void> {
  const queues = await listCustomers(tx, accountId);
  jobQueues.enqueueAll(
    tx,
    cardJob,
    queues.map((queue) => ({ queue, data: {} satisfies CardJob })),
  );
}

/** Creates the job kind that keeps subscriptions in sync with the processor. */
export function createCardSync(parts: CardSyncParts): JobKind<CardJob> {
  const { db, clock, log, audit, arrangements, processors } = parts;
  const changes = new Counter({
    name: "pilothouse_card_subscription_changes_total",
    help: "Status changes of card subscriptions, by new status.",
    labelNames: ["status"],
    registers: [parts.metrics],
  });

  /** Cancels the subscription of a charge that was refunded in full or lost in a dispute. */
  async function endReturned({ client }: CardProcessor, customerId: string, chargeId: string): Promise<void> {
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
    if (found && statusOf(found) !== "ended") await client.subscriptions.cancel(subscription);
  }

  const listAll = ({ client }: CardProcessor, customer: string) =>
    client.subscriptions.list({ customer, status: "all", limit: 100, expand: ["data.latest_invoice"] });

  /** Stops payments of a deleted account: paid subscriptions run out, unpaid subscriptions end now. */
  async function stopRenewal(card: CardProcessor, customerId: string): Promise<void> {
    const { checkout, subscriptions, subscriptionSchedules } = card.client;
    for (const open of await listOpenCheckouts(db, customerId, new Date(clock.now()))) {
      // A completed checkout cannot be expired; its subscription is handled below.
      await checkout.sessions.expire(open).catch(() => undefined);
      await closeCheckout(db, open);
    }
    for (const found of (await listAll(card, customerId)).data) {
      const { id, schedule } = found;
      const status = statusOf(found);
      if (status === "cancelling" || found.status === "canceled" || found.status === "incomplete_expired") continue;
      // A schedule of future changes blocks updates of the subscription.
      if (schedule) await subscriptionSchedules.release(typeof schedule === "string" ? schedule : schedule.id);
      if (status === "active")
        await subscriptions.update(id, { cancel_at_period_end: true, metadata: { [stopMark]: "true" } });
      else await subscriptions.cancel(id);
    }
  }

  /** Resumes renewal of subscriptions that the deletion of the account stopped. */
  async function resumeRenewal({ client }: CardProcessor, found: readonly Stripe.Subscription[]): Promise<boolean> {
    const stopped = found.filter((each) => statusOf(each) === "cancelling" && each.metadata?.[stopMark]);
    for (const { id } of stopped)
      await client.subscriptions.update(id, { cancel_at_period_end: false, metadata: { [stopMark]: "" } });
    return stopped.length > 0;
  }

  /** Lists charges of a customer that were refunded or disputed. */
  async function listReturned({ client, isSandbox }: CardProcessor, customerId: string, accountId: string) {
    const known = await listSubscriptions(db, accountId, isSandbox);
    if (known.every(({ status }) => status === "ended")) return [];
    const { data } = await client.charges.list({ customer: customerId, limit: 100 });
    return data.filter(({ refunded, disputed }) => refunded || disputed).map(({ id }) => id);
  }

  /** Converts a processor's subscription to a row; undefined if the subscription is not from this service. */
  function toRow(
    { livemode, isSandbox }: CardProcessor,
    found: Stripe.Subscription,
    prices: readonly CardPrice[],
    owner: { accountId: string; customerId: string },
    before: SubscriptionRow | undefined,
  ): SubscriptionRow | undefined {
    const status = statusOf(found);
    const item = found.items.data[0];
    const named = prices.find(({ id }) => id === item?.price.id);
    if (!status || !item || found.customer !== owner.customerId || found.livemode !== livemode) return undefined;
    // An ended subscription keeps its last price.
    const keepsPrice = before && (status === "ended" || isUnpaidRaise(found, named, before));
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
      account_id: owner.accountId,
      customer_id: owner.customerId,
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

  /** Adds or ends the grant of a subscription. */
  function apply(time: PaidTime, { id, status, tier, past_due_since: since, created_at }: SubscriptionRow): PaidTime {
    if (status === "ended") return endGrant(time, id, clock.now());
    const until = since ? since.getTime() + pastDueFor : null;
    const known = time.grants.find((grant) => grant.id === id);
    const made = { id, kind: "card", months: 0, leftMs: null, runningSince: null, endedAt: null } as const;
    const grant: PaidGrant = { ...made, createdAt: created_at.getTime(), ...known, tier: tiers.get(tier).name, until };
    return { ...time, grants: [...time.grants.filter((other) => other.id !== id), grant] };
  }

  async function save(tx: Tx, accountId: string, row: SubscriptionRow, before: SubscriptionRow | undefined) {
    if (before && isSame(before, row)) return;
    saveSubscription(tx, row);
    const news = newsOf(before, row);
    if (!news) return;
    tx.afterCommit(() => changes.inc({ status: row.status }));
    const data = { status: row.status, tier: row.tier, interval: row.interval, amount_cents: row.amount_cents };
    const action = before ? "subscription.change" : "subscription.create";
    audit.record(tx, { accountId, actor: { kind: "service" }, action, subject: row.id, data });
    await mailManagers(parts, tx, accountId, news);
  }

  async function sync(card: CardProcessor, customerId: string, { charge, reconciles = false }: CardJob): Promise<void> {
    const owner = await findOwner(db, customerId, card.isSandbox);
    if (!owner) return;
    const accountId = owner.account_id;
    const returned = reconciles ? await listReturned(card, customerId, accountId) : [];
    for (const id of charge === undefined ? returned : [charge]) await endReturned(card, customerId, id);
    const isGone = await isDeleted(db, accountId);
    if (isGone) await stopRenewal(card, customerId);
    let { data } = await listAll(card, customerId);
    if (!isGone && (await resumeRenewal(card, data))) data = (await listAll(card, customerId)).data;
    await db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const [known, prices] = [
        await listSubscriptions(tx, accountId, card.isSandbox),
        await listPrices(tx, card.isSandbox),
      ];
      const rows = data.flatMap((found) => {
        const before = known.find(({ id }) => id === found.id);
        const row = toRow(card, found, prices, { accountId, customerId }, before);
        return row ? [{ row, before }] : [];
      });
      // Subscriptions that had already ended need no change.
      const changed = rows.filter(
        ({ row, before }) => !(row.status === "ended" && (!before || before.status === "ended")),
      );
      await arrangements.serve(tx, accountId, {
        sandbox: card.isSandbox,
        apply: (time) => changed.reduce((at, { row }) => apply(at, row), time),
      });
      for (const { row, before } of changed) await save(tx, accountId, row, before);
    });
  }

  return defineJob<CardJob>({
    ...cardJob,
    width: 1,
    schedule,
    timeout: minute,
    async run({ queue, data }) {
      if (processors.card) await sync(processors.card, queue, data);
    },
  });
}

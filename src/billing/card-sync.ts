import { Counter } from "prom-client";
import { isDeleted, lockAccount } from "../accounts/store.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { AuditLog } from "../kernel/call.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { type BillingMailParts, mailManagers } from "./billing-mails.ts";
import { subscriptionMail } from "./card-mails.ts";
import { cancelForReturnedCharge, listReturnedCharges } from "./card-refunds.ts";
import { listCardSubscriptions, resumeRenewal, stopRenewal } from "./card-renewal.ts";
import { applySubscription, toSubscriptionRow } from "./card-subscriptions.ts";
import type { CardProcessor, Processors } from "./processors.ts";
import {
  findOwner,
  listCustomers,
  listPrices,
  listSubscriptions,
  type SubscriptionRow,
  saveSubscription,
} from "./store.ts";

/** Job kind that fetches the state of a card customer. One queue partition per customer keeps saves in order. */
export const cardJob = { kind: "card-customer" } as const;

export interface CardJob {
  /**
   * Identifier of a charge to check. If the charge was refunded or lost in a dispute, its subscription is cancelled.
   */
  readonly charge?: string;
  /** Whether to check all refunded and disputed charges, in case a webhook was lost. Ignored if `charge` is set. */
  readonly reconciles?: boolean;
}

export interface CardSyncParts extends BillingMailParts, Pick<PlatformParts, "db" | "clock" | "log" | "metrics"> {
  readonly audit: AuditLog;
  readonly arrangements: Arrangements;
  readonly processors: Processors;
}

const second = 1_000;
const minute = 60 * second;

/** Milliseconds before each retry of a failed sync. The daily reconciliation covers longer outages. */
const schedule = [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 60 * minute];

const isSame = (left: SubscriptionRow, right: SubscriptionRow): boolean =>
  left.status === right.status &&
  left.tier === right.tier &&
  left.interval === right.interval &&
  left.amount_cents === right.amount_cents &&
  left.period_ends_at.getTime() === right.period_ends_at.getTime();

/**
 * Schedules a sync with the card processor after an account was deleted or restored. The sync stops the renewals of a
 * deleted account, and resumes the renewals of a restored account.
 */
export async function enqueueCardSync(tx: Tx, jobQueues: JobQueues, accountId: string): Promise<void> {
  const queues = await listCustomers(tx, accountId);
  jobQueues.enqueueAll(
    tx,
    cardJob,
    queues.map((queue) => ({ queue, data: {} satisfies CardJob })),
  );
}

/** Creates the job kind that keeps subscriptions in sync with the processor. */
export function createCardSync(parts: CardSyncParts): JobKind<CardJob> {
  const { db, clock, audit, arrangements, processors } = parts;
  const changes = new Counter({
    name: "pilothouse_card_subscription_changes_total",
    help: "Status changes of card subscriptions, by new status.",
    labelNames: ["status"],
    registers: [parts.metrics],
  });

  async function save(tx: Tx, accountId: string, row: SubscriptionRow, before: SubscriptionRow | undefined) {
    if (before && isSame(before, row)) return;
    saveSubscription(tx, row);
    const data = { status: row.status, tier: row.tier, interval: row.interval, amount_cents: row.amount_cents };
    const action = before ? "subscription.change" : "subscription.create";
    audit.record(tx, { accountId, actor: { kind: "service" }, action, subject: row.id, data });
    const mail = subscriptionMail(before, row);
    if (!mail) return;
    tx.afterCommit(() => changes.inc({ status: row.status }));
    await mailManagers(parts, tx, accountId, mail);
  }

  async function sync(card: CardProcessor, customerId: string, { charge, reconciles }: CardJob): Promise<void> {
    const owner = await findOwner(db, customerId, card.isSandbox);
    if (!owner) return;
    const accountId = owner.account_id;
    const returned = reconciles ? await listReturnedCharges(db, card, owner) : [];
    for (const id of charge === undefined ? returned : [charge]) await cancelForReturnedCharge(card, customerId, id);
    const isAccountDeleted = await isDeleted(db, accountId);
    if (isAccountDeleted) await stopRenewal(parts, card, customerId);
    let { data } = await listCardSubscriptions(card, customerId);
    if (!isAccountDeleted && (await resumeRenewal(card, data)))
      data = (await listCardSubscriptions(card, customerId)).data;
    await db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const known = await listSubscriptions(tx, accountId, card.isSandbox);
      const prices = await listPrices(tx, card.isSandbox);
      const changed = data.flatMap((found) => {
        const before = known.find(({ id }) => id === found.id);
        const row = toSubscriptionRow(parts, card, found, { owner, prices, before });
        // Nothing changes if the end is already stored, or if the subscription ended before it was ever stored.
        const hadEnded = row?.status === "ended" && (!before || before.status === "ended");
        return row && !hadEnded ? [{ row, before }] : [];
      });
      await arrangements.updateGrants(tx, accountId, {
        sandbox: card.isSandbox,
        apply: (time) => changed.reduce((at, { row }) => applySubscription(at, row, clock.now()), time),
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

import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  BillingInterval,
  PaymentMethod,
  type Subscription,
  SubscriptionSchema,
  SubscriptionStatus,
} from "../gen/pilothouse/v1/billing_pb.ts";
import { listGrants } from "../limits/paid-store.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres/database.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { isLive } from "./card-subscriptions.ts";
import { findOrder } from "./order-store.ts";
import type { Processors } from "./processors.ts";
import { listSubscriptions, type SubscriptionRow } from "./store.ts";

export interface AccountSubscriptionParts {
  readonly db: Database;
  readonly config: Pick<Config, "prices">;
  readonly processors: Processors;
}

const intervalNames = storedNames(BillingInterval);
const statusNames = storedNames(SubscriptionStatus);

function toSubscriptionMessage(row: SubscriptionRow): Subscription {
  return create(SubscriptionSchema, {
    tier: toTierMessage(row.tier),
    status: statusNames.toMessage(row.status),
    paymentMethod: PaymentMethod.CARD,
    interval: intervalNames.toMessage(row.interval),
    amountCents: row.amount_cents,
    currency: row.currency,
    periodStartedAt: timestampFromDate(row.period_started_at),
    periodEndsAt: timestampFromDate(row.period_ends_at),
  });
}

/** Returns the order with running prepaid months, as a subscription; undefined if there is none. */
async function findPrepaidSubscription(db: Database, accountId: string): Promise<Subscription | undefined> {
  const block = (await listGrants(db, accountId)).find(({ runningSince }) => runningSince !== null);
  const order = block && (await findOrder(db, block.id, accountId));
  if (!order || block.runningSince === null) return undefined;
  return create(SubscriptionSchema, {
    tier: toTierMessage(order.tier),
    status: SubscriptionStatus.ACTIVE,
    paymentMethod: PaymentMethod.CRYPTO,
    amountCents: order.amount_cents,
    currency: order.currency,
    periodStartedAt: timestampFromMs(block.runningSince),
    periodEndsAt: timestampFromMs(block.runningSince + (block.leftMs ?? 0)),
  });
}

/**
 * Returns the subscription of an account: by card, or else by running prepaid months, or else by agreement with the
 * operator. Returns undefined on the free tier without a payment.
 */
export async function findAccountSubscription(
  { db, config, processors }: AccountSubscriptionParts,
  accountId: string,
  tier: string,
): Promise<Subscription | undefined> {
  const paid = await listSubscriptions(db, accountId, processors.countsSandbox);
  const live = paid.find(isLive);
  if (live) return toSubscriptionMessage(live);
  const block = await findPrepaidSubscription(db, accountId);
  if (block) return block;
  if (tier === "free") return undefined;
  const agreed = { paymentMethod: PaymentMethod.INVOICE, status: SubscriptionStatus.ACTIVE };
  return create(SubscriptionSchema, { tier: toTierMessage(tier), ...agreed, currency: config.prices.currency });
}

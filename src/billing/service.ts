import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type QuotaParts, readQuotas } from "../account-api/quotas.ts";
import { findAccount } from "../accounts/store.ts";
import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import {
  BillingInterval,
  BillingSchema,
  type BillingService,
  type CheckoutSession,
  CheckoutSessionSchema,
  type CreateCheckoutSessionRequest,
  PaymentMethod,
  PortalSessionSchema,
  type Subscription,
  SubscriptionSchema,
  SubscriptionStatus,
} from "../gen/pilothouse/v1/billing_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { listGrants } from "../limits/paid-store.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import type { Config } from "../platform/config.ts";
import { Failure, fail, failFields } from "../platform/errors.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { tierPriceOf } from "../platform/tier-prices.ts";
import { createCardCatalog } from "./card-catalog.ts";
import { findOpenOrder, findOrder } from "./order-store.ts";
import { asProcessorFailure, type CardProcessor, noProcessor, type Processors } from "./processors.ts";
import { checkDelays } from "./reconciliation.ts";
import {
  type Customer,
  closeCheckout,
  findCustomer,
  insertCheckout,
  keepCustomer,
  listOpenCheckouts,
  listSubscriptions,
  type SubscriptionRow,
  setCheckAt,
} from "./store.ts";

export interface BillingServiceParts extends QuotaParts {
  readonly config: Pick<Config, "prices" | "publicUrl">;
  readonly processors: Processors;
}

const tierNames = storedNames(Tier);
const intervalNames = storedNames(BillingInterval);
const statusNames = storedNames(SubscriptionStatus);

const isLive = ({ status }: SubscriptionRow): boolean => status !== "ended";

/**
 * Validates a URL that the processor redirects a browser to. Throws `bad-request` unless the URL is https, or http to
 * localhost.
 */
function readUrl(field: string, given: string | undefined, absent: string): string {
  if (given === undefined) return absent;
  const url = URL.parse(given);
  const isLocal = url?.protocol === "http:" && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname);
  if (!url || (url.protocol !== "https:" && !isLocal))
    throw failFields("bad-request", { [field]: "must be an https URL" });
  return url.href;
}

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

export function createBillingService(parts: BillingServiceParts): ServiceImplementation<typeof BillingService> {
  const { db, clock, config, processors } = parts;
  const { prices, publicUrl } = config;
  const catalog = createCardCatalog({ db, prices });

  function needCard(): CardProcessor {
    if (!processors.card) throw noProcessor();
    return processors.card;
  }

  async function liveSubscription(
    accountId: string,
    { isSandbox }: CardProcessor,
  ): Promise<SubscriptionRow | undefined> {
    return (await listSubscriptions(db, accountId, isSandbox)).find(isLive);
  }

  async function ensureCustomer({ client, isSandbox }: CardProcessor, accountId: string): Promise<Customer> {
    const found = await findCustomer(db, accountId, isSandbox);
    if (found) return found;
    const made = await client.customers.create(
      { metadata: { account_id: accountId } },
      { idempotencyKey: `customer-${accountId}` },
    );
    await keepCustomer(db, { id: made.id, account_id: accountId }, isSandbox, new Date(clock.now()));
    const kept = await findCustomer(db, accountId, isSandbox);
    if (!kept) throw new Error("the saved customer does not exist");
    return kept;
  }

  /**
   * Closes the other open checkouts of a customer, because two of them could be paid. Throws `conflict` if a checkout
   * was paid but its subscription is not stored yet.
   */
  async function closeOthers({ client, isSandbox }: CardProcessor, { id, account_id }: Customer): Promise<void> {
    const { sessions } = client.checkout;
    for (const open of await listOpenCheckouts(db, id, new Date(clock.now()))) {
      // A checkout that is not open cannot be expired.
      const { status, subscription } = await sessions.expire(open).catch(() => sessions.retrieve(open));
      if (status === "open") throw new Error("the processor did not expire a checkout");
      const known = status === "complete" ? await listSubscriptions(db, account_id, isSandbox) : undefined;
      if (known && !known.some((row) => row.id === subscription)) {
        await db.transaction(async (tx) => setCheckAt(tx, open, new Date(clock.now())));
        throw fail(
          "conflict",
          {},
          { detail: "a checkout of the account was just paid: read its billing before you open another" },
        );
      }
      await closeCheckout(db, open);
    }
  }

  async function openCheckout(call: Call, card: CardProcessor, request: CreateCheckoutSessionRequest) {
    const { accountId } = call.principal;
    const tier = tierNames.toStored(request.tier) ?? "";
    const interval = intervalNames.toStored(request.interval) ?? "month";
    const cents = tierPriceOf(prices, tier, interval);
    if (cents === undefined) throw failFields("validation-failed", { tier: "is not sold" });
    const successUrl = readUrl("success_url", request.successUrl, `${publicUrl}/billing/done`);
    const cancelUrl = readUrl("cancel_url", request.cancelUrl, `${publicUrl}/billing/back`);
    const session = await (async () => {
      const customer = await ensureCustomer(card, accountId);
      const price = await catalog.price(card, tier, interval, cents);
      if (!call.resumes) await closeOthers(card, customer);
      const wanted = { mode: "subscription" as const, customer: customer.id, line_items: [{ price, quantity: 1 }] };
      const urls = { success_url: successUrl, cancel_url: cancelUrl };
      const made = await card.client.checkout.sessions.create(
        { ...wanted, ...urls },
        { idempotencyKey: call.ids.next("cks") },
      );
      return { ...made, customer: customer.id };
    })().catch((error: unknown) => {
      throw error instanceof Failure ? error : asProcessorFailure(error);
    });
    return { session, tier, interval, cents };
  }

  async function createCheckoutSession(call: Call, request: CreateCheckoutSessionRequest): Promise<CheckoutSession> {
    const card = needCard();
    if (await liveSubscription(call.principal.accountId, card))
      throw fail("conflict", {}, { detail: "the account has a subscription: change it in the portal" });
    const { session, tier, interval, cents } = await openCheckout(call, card, request);
    const { id, url, customer: customerId } = session;
    if (!url) throw new Error("the processor returned a checkout without a URL");
    const [now, expires] = [clock.now(), new Date(session.expires_at * 1_000)];
    return call.commit(async (tx) => {
      const checkAt = new Date(now + (checkDelays[0] ?? 0));
      insertCheckout(tx, { id, customerId, now: new Date(now), expiresAt: expires, checkAt });
      call.audit(tx, { subject: id, data: { tier, interval, amount_cents: cents, currency: prices.currency } });
      return create(CheckoutSessionSchema, { id, url, expiresAt: timestampFromDate(expires), livemode: card.livemode });
    });
  }

  /** The crypto order whose prepaid months are running, as a subscription. */
  async function runningBlock(accountId: string): Promise<Subscription | undefined> {
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

  /** The subscription of an account: by card, by crypto order, or by agreement with the operator. */
  async function subscriptionOf(accountId: string, tier: string): Promise<Subscription | undefined> {
    const paid = await listSubscriptions(db, accountId, processors.countsSandbox);
    const live = paid.find(isLive);
    if (live) return toSubscriptionMessage(live);
    const block = await runningBlock(accountId);
    if (block) return block;
    if (tier === "free") return undefined;
    const agreed = { paymentMethod: PaymentMethod.INVOICE, status: SubscriptionStatus.ACTIVE };
    return create(SubscriptionSchema, { tier: toTierMessage(tier), ...agreed, currency: prices.currency });
  }

  return {
    createCheckoutSession,
    async createPortalSession(call, { returnUrl }) {
      const card = needCard();
      const { accountId } = call.principal;
      const customer = await findCustomer(db, accountId, card.isSandbox);
      const paid = await listSubscriptions(db, accountId, card.isSandbox);
      if (!customer || paid.length === 0) throw fail("conflict", {}, { detail: "the account has never paid by card" });
      const back = readUrl("return_url", returnUrl, `${publicUrl}/console/billing`);
      const wanted = { customer: customer.id, return_url: back };
      const session = await catalog
        .portal(card)
        .then((configuration) =>
          card.client.billingPortal.sessions.create(
            { ...wanted, configuration },
            { idempotencyKey: call.ids.next("bps") },
          ),
        )
        .catch((error: unknown) => {
          throw asProcessorFailure(error);
        });
      return call.commit(async (tx) => {
        call.audit(tx, { subject: customer.id });
        return create(PortalSessionSchema, { id: session.id, url: session.url, livemode: card.livemode });
      });
    },
    async get({ principal: { accountId } }) {
      const account = await findAccount(db, accountId);
      const [quotas, subscription, openOrder] = await Promise.all([
        readQuotas(parts, account),
        subscriptionOf(accountId, account.tier),
        findOpenOrder(db, accountId),
      ]);
      return create(BillingSchema, {
        tier: toTierMessage(account.tier),
        quotas,
        livemode: processors.livemode,
        ...(subscription && { subscription }),
        ...(openOrder !== undefined && { openCryptoOrderId: openOrder }),
      });
    },
  };
}

import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import {
  BillingInterval,
  type CheckoutSession,
  CheckoutSessionSchema,
  type CreateCheckoutSessionRequest,
} from "../gen/pilothouse/v1/billing_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { Config } from "../platform/config.ts";
import { Failure, fail, failFields } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { tierPriceOf } from "../platform/tier-prices.ts";
import type { CardCatalog } from "./card-catalog.ts";
import { isLive } from "./card-subscriptions.ts";
import { asProcessorFailure, type CardProcessor, noProcessor, type Processors } from "./processors.ts";
import { checkDelays } from "./reconciliation.ts";
import {
  type Customer,
  closeCheckout,
  findCustomer,
  insertCheckout,
  listOpenCheckouts,
  listSubscriptions,
  saveCustomer,
  setCheckAt,
} from "./store.ts";

export interface CardCheckoutParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly config: Pick<Config, "prices" | "publicUrl">;
  readonly processors: Processors;
  readonly catalog: CardCatalog;
}

const tierNames = storedNames(Tier);
const intervalNames = storedNames(BillingInterval);

export function needCard({ card }: Processors): CardProcessor {
  if (!card) throw noProcessor();
  return card;
}

/**
 * Returns a URL that the processor redirects a browser to, or `fallback` if none was given. Throws `bad-request` unless
 * the URL is https, or http to localhost or a loopback address.
 */
export function readUrl(field: string, given: string | undefined, fallback: string): string {
  if (given === undefined) return fallback;
  const url = URL.parse(given);
  const isLocal = url?.protocol === "http:" && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname);
  if (!url || (url.protocol !== "https:" && !isLocal))
    throw failFields("bad-request", { [field]: "must be an https URL" });
  return url.href;
}

/** Returns the customer of an account. Creates the customer at the processor if none is stored. */
async function ensureCustomer(
  { db, clock }: CardCheckoutParts,
  { client, isSandbox }: CardProcessor,
  accountId: string,
): Promise<Customer> {
  const found = await findCustomer(db, accountId, isSandbox);
  if (found) return found;
  const made = await client.customers.create(
    { metadata: { account_id: accountId } },
    { idempotencyKey: `customer-${accountId}` },
  );
  await saveCustomer(db, { id: made.id, account_id: accountId }, isSandbox, new Date(clock.now()));
  const kept = await findCustomer(db, accountId, isSandbox);
  if (!kept) throw new Error("the saved customer does not exist");
  return kept;
}

/**
 * Closes the open checkouts of a customer before another checkout opens, so that a customer cannot pay twice. Throws
 * `conflict` if a checkout was paid but its subscription is not stored yet.
 */
async function closeOthers(
  { db, clock }: CardCheckoutParts,
  { client, isSandbox }: CardProcessor,
  { id, account_id }: Customer,
): Promise<void> {
  const { sessions } = client.checkout;
  for (const open of await listOpenCheckouts(db, id, new Date(clock.now()))) {
    // `expire` fails for a checkout that is complete or expired. `retrieve` then returns the status.
    const { status, subscription } = await sessions.expire(open).catch(() => sessions.retrieve(open));
    if (status === "open") throw new Error("the processor did not expire a checkout");
    const known = status === "complete" ? await listSubscriptions(db, account_id, isSandbox) : undefined;
    if (known && !known.some((row) => row.id === subscription)) {
      await db.transaction(async (tx) => setCheckAt(tx, open, new Date(clock.now())));
      throw fail(
        "conflict",
        {},
        { detail: "a checkout of the account was just paid: get its subscription before you open another checkout" },
      );
    }
    await closeCheckout(db, open);
  }
}

/** Creates the method that opens a checkout of a card subscription. */
export function createCardCheckout(parts: CardCheckoutParts) {
  const { db, clock, config, processors, catalog } = parts;
  const { prices, publicUrl } = config;

  return async function createCheckoutSession(
    call: Call,
    request: CreateCheckoutSessionRequest,
  ): Promise<CheckoutSession> {
    const { accountId } = call.principal;
    const card = needCard(processors);
    if ((await listSubscriptions(db, accountId, card.isSandbox)).some(isLive))
      throw fail("conflict", {}, { detail: "the account has a subscription: change it in the portal" });
    const tier = tierNames.toStored(request.tier) ?? "";
    const interval = intervalNames.toStored(request.interval) ?? "month";
    const cents = tierPriceOf(prices, tier, interval);
    if (cents === undefined) throw failFields("validation-failed", { tier: "is not sold" });
    const success_url = readUrl("success_url", request.successUrl, `${publicUrl}/billing/done`);
    const cancel_url = readUrl("cancel_url", request.cancelUrl, `${publicUrl}/billing/back`);
    const open = async () => {
      const customer = await ensureCustomer(parts, card, accountId);
      const price = await catalog.price(card, tier, interval, cents);
      if (!call.resumes) await closeOthers(parts, card, customer);
      const wanted = { mode: "subscription" as const, customer: customer.id, line_items: [{ price, quantity: 1 }] };
      const made = await card.client.checkout.sessions.create(
        { ...wanted, success_url, cancel_url },
        { idempotencyKey: call.ids.next("cks") },
      );
      return { ...made, customerId: customer.id };
    };
    const session = await open().catch((error: unknown) => {
      throw error instanceof Failure ? error : asProcessorFailure(error);
    });
    const { id, url, customerId } = session;
    if (!url) throw new Error("the processor returned a checkout without a URL");
    const [now, expires] = [clock.now(), new Date(session.expires_at * 1_000)];
    return call.commit(async (tx) => {
      const checkAt = new Date(now + (checkDelays[0] ?? 0));
      insertCheckout(tx, { id, customerId, now: new Date(now), expiresAt: expires, checkAt });
      call.audit(tx, { subject: id, data: { tier, interval, amount_cents: cents, currency: prices.currency } });
      return create(CheckoutSessionSchema, { id, url, expiresAt: timestampFromDate(expires), livemode: card.livemode });
    });
  };
}

import { lockAccount } from "../accounts/store.ts";
import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import type { CryptoCheckoutRequest, CryptoOrder, CryptoQuoteRequest } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { Config } from "../platform/config.ts";
import { type Failure, fail, failFields } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { type Prices, tierPriceOf } from "../platform/tier-prices.ts";
import { toOrderMessage } from "./order-message.ts";
import { changeOrder, findOpenOrder, findOrder, insertOrder, type OrderRow } from "./order-store.ts";
import { expiryMarginMs } from "./order-sync.ts";
import { cryptoAmount } from "./processors/decimal.ts";
import { awaitProcessor, type CryptoProcessor, noProcessor, type Processors } from "./processors.ts";
import { listSubscriptions } from "./store.ts";

export interface OrderCheckoutParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly config: Pick<Config, "prices" | "publicUrl">;
  readonly processors: Processors;
}

/** Milliseconds for which a quote is valid. */
const quoteFor = 15 * 60_000;

const tierNames = storedNames(Tier);

export const noOrder = (): Failure => fail("not-found", {}, { detail: "no order has this id" });
export const conflict = (detail: string): Failure => fail("conflict", {}, { detail });

export function needCrypto({ crypto }: Processors): CryptoProcessor {
  if (!crypto) throw noProcessor();
  return crypto;
}

/** Returns an order. Throws `not-found` if the caller's account has no order with this identifier. */
export async function ownOrder(db: Database, { principal }: Call, id: string): Promise<OrderRow> {
  const row = await findOrder(db, id, principal.accountId);
  if (!row) throw noOrder();
  return row;
}

function recordOrder(call: Call, tx: Tx, row: OrderRow): CryptoOrder {
  const { id: subject, tier, months, amount_cents, crypto_currency, crypto_amount } = row;
  call.audit(tx, { subject, data: { tier, months, amount_cents, crypto_currency, crypto_amount } });
  return toOrderMessage(row);
}

/** Returns the cents for months of a tier, at most the yearly price. Returns undefined if the tier is not sold. */
function costOf(prices: Prices, tier: string, months: number): number | undefined {
  const [month, year] = [tierPriceOf(prices, tier, "month"), tierPriceOf(prices, tier, "year")];
  return month === undefined || year === undefined ? undefined : Math.min(months * month, year);
}

/** Fields that requests for a quote and for a checkout share. */
interface OrderOptions {
  readonly tier: Tier;
  readonly months?: number | undefined;
  readonly cryptoCurrency?: string | undefined;
  readonly refundAddress?: string | undefined;
  readonly note?: string | undefined;
}

/** Creates the methods that quote and open orders. */
export function createOrderCheckout({ db, clock, config, processors }: OrderCheckoutParts) {
  const { prices, publicUrl } = config;

  /** Builds the row of an order at the current exchange rate. Throws `validation-failed`. */
  async function priced(crypto: CryptoProcessor, accountId: string, id: string, options: OrderOptions) {
    const { months = 1, cryptoCurrency = "", refundAddress, note } = options;
    const coin = cryptoCurrency.toLowerCase();
    if (!crypto.currencies.includes(coin))
      throw failFields("validation-failed", { crypto_currency: `must be one of ${crypto.currencies.join(", ")}` });
    const tier = tierNames.toStored(options.tier) ?? "";
    const cents = costOf(prices, tier, months);
    if (cents === undefined) throw failFields("validation-failed", { tier: "is not sold" });
    const rate = await awaitProcessor(crypto.greenfield.rate(coin, prices.currency));
    const now = new Date(clock.now());
    return {
      id,
      account_id: accountId,
      status: "quoted" as const,
      tier,
      months,
      amount_cents: cents,
      currency: prices.currency,
      crypto_currency: coin,
      crypto_amount: cryptoAmount(cents, rate, coin),
      exchange_rate: rate,
      quote_expires_at: new Date(now.getTime() + quoteFor),
      created_at: now,
      updated_at: now,
      refund_address: refundAddress ?? null,
      note: note ?? null,
      livemode: crypto.livemode,
      sandbox: crypto.isSandbox,
    };
  }

  /** Throws `conflict` if the account has an open order, or a card subscription that is active or past due. */
  async function assertFree(on: Tx | Database, { accountId }: Call["principal"]): Promise<void> {
    const open = await findOpenOrder(on, accountId);
    if (open !== undefined) throw conflict(`the order ${open} is open: pay or cancel it first`);
    const paid = await listSubscriptions(on, accountId, processors.countsSandbox);
    if (paid.some(({ status }) => status === "active" || status === "past_due"))
      throw conflict("the account pays by card: end the subscription in the portal first");
  }

  async function quote(call: Call, request: CryptoQuoteRequest): Promise<CryptoOrder> {
    const order = await priced(needCrypto(processors), call.principal.accountId, call.ids.next("ord"), request);
    return call.commit(async (tx) => {
      const row = await insertOrder(tx, order);
      return recordOrder(call, tx, row);
    });
  }

  /**
   * Returns a new order, or the quoted order that the request names. Throws `not-found` for an unknown order, and
   * `conflict` if the quote was used, has expired or belongs to another processor.
   */
  async function toOpen(call: Call, crypto: CryptoProcessor, request: CryptoCheckoutRequest) {
    const { accountId } = call.principal;
    const newId = call.ids.next("ord");
    if (request.orderId === undefined) return { order: await priced(crypto, accountId, newId, request), isNew: true };
    const order = await ownOrder(db, call, request.orderId);
    if (order.sandbox !== crypto.isSandbox)
      throw conflict("the quote belongs to another payment processor: request a new quote");
    if (order.status !== "quoted") throw conflict(`the order is ${order.status}`);
    if (!order.quote_expires_at || order.quote_expires_at.getTime() <= clock.now())
      throw conflict("the quote has expired: request a new quote");
    return { order, isNew: false };
  }

  /** Returns the invoice of an order and its payment details. Creates the invoice if none exists. */
  async function invoiceFor(
    { greenfield }: CryptoProcessor,
    order: { id: string; crypto_amount: string; crypto_currency: string },
  ) {
    const wanted = { id: order.id, amount: order.crypto_amount, crypto: order.crypto_currency };
    const invoice =
      (await greenfield.findInvoice(order.id)) ??
      (await greenfield.createInvoice({ ...wanted, redirectUrl: `${publicUrl}/billing/done` }));
    return { invoice, payment: await greenfield.payment(invoice.id, order.crypto_currency) };
  }

  async function checkout(call: Call, request: CryptoCheckoutRequest): Promise<CryptoOrder> {
    const crypto = needCrypto(processors);
    await assertFree(db, call.principal);
    const { order, isNew } = await toOpen(call, crypto, request);
    const { invoice, payment } = await awaitProcessor(invoiceFor(crypto, order));
    const { refundAddress, note } = request;
    return call.commit(async (tx) => {
      await lockAccount(tx, call.principal.accountId);
      await assertFree(tx, call.principal);
      const now = clock.now();
      const opened = {
        status: "awaiting_payment" as const,
        invoice_id: invoice.id,
        payment_address: payment.address,
        payment_uri: payment.uri,
        checkout_url: invoice.checkoutLink,
        expires_at: new Date(invoice.expiresAt),
        ...(refundAddress !== undefined && { refund_address: refundAddress }),
        ...(note !== undefined && { note }),
        look_at: new Date(Math.min(now + 60_000, invoice.expiresAt + expiryMarginMs)),
        updated_at: new Date(now),
      };
      const row = isNew
        ? await insertOrder(tx, { ...order, ...opened, quote_expires_at: null })
        : await changeOrder(tx, order.id, ["quoted"], opened);
      if (!row) throw conflict("the quote was used by another request: request a new quote");
      return recordOrder(call, tx, row);
    });
  }

  return { quote, checkout };
}

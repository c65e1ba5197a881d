import { create } from "@bufbuild/protobuf";
import { lockAccount } from "../accounts/store.ts";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import {
  type CryptoCheckoutRequest,
  type CryptoOrder,
  type CryptoOrderService,
  type CryptoQuoteRequest,
  type CryptoReceipt,
  ListCryptoOrdersResponseSchema,
  type UpdateCryptoOrderRequest,
} from "../gen/pilothouse/v1/crypto_order_pb.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import type { Clock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { type Failure, fail, failFields } from "../platform/errors.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { type Prices, tierPriceOf } from "../platform/tier-prices.ts";
import { orderStatusNames, toOrderMessage } from "./order-message.ts";
import { moves } from "./order-states.ts";
import {
  changeOrder,
  findOpenOrder,
  findOrder,
  insertOrder,
  listOrders,
  type OrderChanges,
  type OrderRow,
  openStatuses,
} from "./order-store.ts";
import { expiryMargin, type Orders, orderJob } from "./order-sync.ts";
import { compareDecimals, cryptoAmount } from "./processors/decimal.ts";
import { asProcessorFailure, type CryptoProcessor, noProcessor, type Processors } from "./processors.ts";
import { receiptOf, receiptPdf, receiptText } from "./receipts.ts";
import { listSubscriptions } from "./store.ts";

export interface OrderServiceParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly config: Pick<Config, "prices" | "publicUrl">;
  readonly processors: Processors;
  readonly orders: Orders;
  readonly jobQueues: JobQueues;
}

const defaultPage = 20;

/** Milliseconds for which a quote is valid. */
const quoteFor = 15 * 60_000;

const orderId = idPattern("ord");
const tierNames = storedNames(Tier);

const noOrder = (): Failure => fail("not-found", {}, { detail: "no order has this id" });
const conflict = (detail: string): Failure => fail("conflict", {}, { detail });

/** Price of several months of a tier, capped at its yearly price. */
function costOf(prices: Prices, tier: string, months: number): number | undefined {
  const [month, year] = [tierPriceOf(prices, tier, "month"), tierPriceOf(prices, tier, "year")];
  return month === undefined || year === undefined ? undefined : Math.min(months * month, year);
}

/** Requested purchase. */
interface OrderOptions {
  readonly tier: Tier;
  readonly months?: number | undefined;
  readonly cryptoCurrency?: string | undefined;
  readonly refundAddress?: string | undefined;
  readonly note?: string | undefined;
}

export function createOrderService(parts: OrderServiceParts): ServiceImplementation<typeof CryptoOrderService> {
  const { db, clock, config, processors, orders, jobQueues } = parts;
  const { prices, publicUrl } = config;

  function needCrypto(): CryptoProcessor {
    if (!processors.crypto) throw noProcessor();
    return processors.crypto;
  }

  async function own({ principal }: Call, id: string): Promise<OrderRow> {
    const row = await findOrder(db, id, principal.accountId);
    if (!row) throw noOrder();
    return row;
  }

  const ask = <T>(asked: Promise<T>): Promise<T> =>
    asked.catch((error: unknown) => {
      throw asProcessorFailure(error);
    });

  /** Builds an order at the current exchange rate. */
  async function priced(crypto: CryptoProcessor, accountId: string, id: string, options: OrderOptions) {
    const { months = 1, cryptoCurrency = "", refundAddress, note } = options;
    const coin = cryptoCurrency.toLowerCase();
    if (!crypto.currencies.includes(coin))
      throw failFields("validation-failed", { crypto_currency: `must be one of ${crypto.currencies.join(", ")}` });
    const tier = tierNames.toStored(options.tier) ?? "";
    const cents = costOf(prices, tier, months);
    if (cents === undefined) throw failFields("validation-failed", { tier: "is not sold" });
    const rate = await ask(crypto.greenfield.rate(coin, prices.currency));
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

  /** Throws `conflict` if the account has another open order or an active card subscription. */
  async function assertFree(on: Tx | Database, { accountId }: Call["principal"], but?: string): Promise<void> {
    const open = await findOpenOrder(on, accountId);
    if (open !== undefined && open !== but) throw conflict(`the order ${open} is open: pay or cancel it first`);
    const paid = await listSubscriptions(on, accountId, processors.countsSandbox);
    if (paid.some(({ status }) => status === "active" || status === "past_due"))
      throw conflict("the account pays by card: end the subscription in the portal first");
  }

  async function quote(call: Call, request: CryptoQuoteRequest): Promise<CryptoOrder> {
    const order = await priced(needCrypto(), call.principal.accountId, call.ids.next("ord"), request);
    return call.commit(async (tx) => {
      const row = await insertOrder(tx, order);
      const { id: subject, tier, months, amount_cents, crypto_currency, crypto_amount } = row;
      call.audit(tx, { subject, data: { tier, months, amount_cents, crypto_currency, crypto_amount } });
      return toOrderMessage(row);
    });
  }

  /** Returns the quoted order of the request if its quote is valid, or a new order. */
  async function toOpen(call: Call, crypto: CryptoProcessor, request: CryptoCheckoutRequest) {
    const { accountId } = call.principal;
    const newId = call.ids.next("ord");
    if (request.orderId === undefined) return { order: await priced(crypto, accountId, newId, request), isNew: true };
    const order = await own(call, request.orderId);
    if (order.sandbox !== crypto.isSandbox)
      throw conflict("the quote is of another payment processor: ask for a new quote");
    if (order.status !== "quoted") throw conflict(`the order is ${order.status}`);
    if (!order.quote_expires_at || order.quote_expires_at.getTime() <= clock.now())
      throw conflict("the quote has expired: ask for a new one");
    return { order, isNew: false };
  }

  /** Creates the invoice at the processor, unless an earlier attempt has created it. */
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
    const crypto = needCrypto();
    await assertFree(db, call.principal);
    const { order, isNew } = await toOpen(call, crypto, request);
    const { invoice, payment } = await ask(invoiceFor(crypto, order));
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
        look_at: new Date(Math.min(now + 60_000, invoice.expiresAt + expiryMargin)),
        updated_at: new Date(now),
      };
      const row = isNew
        ? await insertOrder(tx, { ...order, ...opened, quote_expires_at: null })
        : await changeOrder(tx, order.id, ["quoted"], opened);
      if (!row) throw conflict("the quote was used meanwhile: ask for a new one");
      const { id: subject, tier, months, amount_cents, crypto_currency, crypto_amount } = row;
      call.audit(tx, { subject, data: { tier, months, amount_cents, crypto_currency, crypto_amount } });
      return toOrderMessage(row);
    });
  }

  async function update(call: Call, request: UpdateCryptoOrderRequest): Promise<CryptoOrder> {
    const paths = new Set(request.updateMask?.paths);
    const before = await own(call, request.id);
    if (paths.size === 0) {
      call.markUnchanged();
      return toOrderMessage(before);
    }
    return db.transaction(async (tx) => {
      await lockAccount(tx, before.account_id);
      const order = (await findOrder(tx, request.id, before.account_id)) ?? before;
      const hasEnded = order.status !== "quoted" && !openStatuses.some((open) => open === order.status);
      if (paths.has("refund_address") && hasEnded)
        throw conflict("the order has ended: its refund address cannot be changed");
      const relined = paths.has("invoice_lines") && order.status === "paid";
      const changes: OrderChanges = {
        ...(paths.has("refund_address") && { refund_address: request.refundAddress ?? null }),
        ...(paths.has("note") && { note: request.note ?? null }),
        ...(paths.has("invoice_lines") && { invoice_lines: request.invoiceLines }),
        ...(relined && { receipt_revision: order.receipt_revision + 1 }),
        updated_at: new Date(clock.now()),
      };
      const row = await changeOrder(tx, order.id, [order.status], changes);
      if (!row) throw noOrder();
      call.audit(tx, { subject: order.id, data: { changed: [...paths] } });
      return toOrderMessage(row);
    });
  }

  async function cancel(call: Call, id: string): Promise<CryptoOrder> {
    const order = await own(call, id);
    const invoiceId = order.invoice_id;
    const paid = "the order has received a payment";
    if (order.status === "awaiting_payment" && invoiceId !== null) {
      const { greenfield } = needCrypto();
      const payment = await ask(greenfield.payment(invoiceId, order.crypto_currency));
      if (compareDecimals(payment.paid, "0") !== 0) throw conflict(paid);
    }
    return call.commit(async (tx) => {
      await lockAccount(tx, order.account_id);
      const now = (await findOrder(tx, id, order.account_id)) ?? order;
      if (compareDecimals(now.crypto_amount_paid, "0") !== 0) throw conflict(paid);
      const row = await orders.move(tx, now, moves.cancel);
      if (!row) throw conflict(`the order is ${now.status}`);
      call.audit(tx, { subject: id });
      // The processor is notified after the commit: its response must find the order cancelled.
      if (row.invoice_id !== null) jobQueues.enqueue(tx, orderJob, { queue: id, data: {} });
      return toOrderMessage(row);
    });
  }

  async function receipt(call: Call, id: string) {
    const found = receiptOf(await own(call, id));
    if (!found) throw conflict("the order is not paid: it has a receipt once it is");
    return found;
  }

  /** Sets a distinct file name per receipt, so that a browser can save several receipts. */
  function nameFile(call: Call, { number, revision }: CryptoReceipt, extension: string): void {
    const name = `receipt-${number}${revision > 1 ? `-revision-${revision}` : ""}.${extension}`;
    call.setHeader("content-disposition", `attachment; filename="${name}"`);
  }

  return {
    checkout,
    quote,
    async list({ principal: { accountId } }, { limit = defaultPage, cursor, status }) {
      const query = { accountId, status: orderStatusNames.toStored(status), before: readCursor(cursor, orderId) };
      const { rows, position } = cutPage(await listOrders(db, { ...query, limit: limit + 1 }), limit);
      return create(ListCryptoOrdersResponseSchema, { data: rows.map(toOrderMessage), ...position });
    },
    get: async (call, { id }) => toOrderMessage(await own(call, id)),
    update,
    cancel: (call, { id }) => cancel(call, id),
    getReceipt: async (call, { id }) => receipt(call, id),
    async getReceiptText(call, { id }) {
      const found = await receipt(call, id);
      const data = Buffer.from(receiptText(found));
      nameFile(call, found, "txt");
      return create(HttpBodySchema, { contentType: "text/plain; charset=utf-8", data });
    },
    async getReceiptPdf(call, { id }) {
      const found = await receipt(call, id);
      const data = await receiptPdf(found);
      nameFile(call, found, "pdf");
      return create(HttpBodySchema, { contentType: "application/pdf", data });
    },
  };
}

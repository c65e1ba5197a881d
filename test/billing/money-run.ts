import { sql } from "kysely";
import { expect } from "vitest";
import { extendOrder, refundOrder } from "../../src/billing/order-operator.ts";
import { addDecimals } from "../../src/billing/processors/decimal.ts";
import { Tier } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { BillingInterval } from "../../src/gen/pilothouse/v1/billing_pb.ts";
import { CryptoOrderStatus } from "../../src/gen/pilothouse/v1/crypto_order_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { createRandom, type Random } from "../e2e/support/random.ts";
import { type Card, MoneyModel, type Order, soldTiers } from "./money-model.ts";
import type { MoneyScene } from "./money-scene.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const toTier = { personal: Tier.PERSONAL, api_builder: Tier.API_BUILDER, api_scale: Tier.API_SCALE } as const;
const monthly = { personal: 1_900, api_builder: 4_900, api_scale: 49_900 } as const;

/** Milliseconds until a lookup finds a change without a notice: of open orders, ended orders and cards. */
const found = { open: 10 * minute, ended: 6 * hour + minute, card: day + minute };

export interface MoneyFigures {
  readonly steps: Readonly<Record<string, number>>;
  readonly paidCents: number;
  readonly refundedCents: number;
  readonly servedMs: number;
}

/** Runs a random sequence for a new account, and compares the database with the model after each step. */
export async function runMoney(scene: MoneyScene, seed: number, length: number): Promise<MoneyFigures> {
  const random = createRandom(seed);
  const accountId = await scene.newAccount();
  const run = new Run(scene, random, accountId);
  for (let step = 0; step < length; step += 1) {
    await run.step();
    await run.verify(`sequence ${seed}, step ${step}: ${run.did.join(", ")}`);
  }
  return run.figures();
}

type Action = () => Promise<void>;

interface Purchase {
  readonly tier: (typeof soldTiers)[number];
  readonly months: number;
  readonly cents: number;
}

const soldNames: readonly string[] = soldTiers;
const rankOf = (tier: string): number => soldNames.indexOf(tier);

class Run {
  readonly did: string[] = [];
  readonly #steps: Record<string, number> = {};
  readonly #scene: MoneyScene;
  readonly #random: Random;
  readonly #accountId: string;
  readonly #model: MoneyModel;
  #portal = "";

  constructor(scene: MoneyScene, random: Random, accountId: string) {
    this.#scene = scene;
    this.#random = random;
    this.#accountId = accountId;
    this.#model = new MoneyModel(scene.now());
  }

  async step(): Promise<void> {
    const actions: Record<string, Action> = {
      quote: () => this.#quote(),
      open: () => this.#open(),
      pass: () => this.#passSome(),
      pay: () => this.#pay(),
      settle: () => this.#settle(),
      end: () => this.#end(),
      cancel: () => this.#cancel(),
      refund: () => this.#refund(),
      extend: () => this.#extend(),
      arrange: () => this.#arrange(),
      subscribe: () => this.#subscribe(),
      change: () => this.#changeCard(),
      later: () => this.#passSome(),
      settles: () => this.#settle(),
      pays: () => this.#pay(),
      changes: () => this.#changeCard(),
    };
    const name = this.#random.pick(Object.keys(actions));
    await actions[name]?.();
  }

  #note(what: string): void {
    this.did.push(what);
    const [name = ""] = what.split(" ");
    this.#steps[name] = (this.#steps[name] ?? 0) + 1;
  }

  async #pass(milliseconds: number): Promise<void> {
    const model = this.#model;
    await this.#scene.pass(milliseconds);
    model.passTo(this.#scene.now());
    if (milliseconds >= found.open && model.open) model.look(model.open);
    model.forgetQuotes();
  }

  async #passSome(): Promise<void> {
    const some = [10 * minute, 30 * minute, 70 * minute, 7 * hour, 3 * day, 15 * day, 35 * day, 200 * day];
    const time = this.#random.pick(some) + this.#random.below(1_000);
    this.#note(`pass ${Math.round(time / minute)} min`);
    await this.#pass(time);
  }

  /** Acts at the processor. One notice in four is lost, so that a scheduled lookup must find the change. */
  async #atProcessor(id: string, action: string, wait: number): Promise<void> {
    const isLost = this.#random.chance(0.25);
    this.#note(`${action}${isLost ? " (lost)" : ""}`);
    const act = async () => void (await this.#scene.sandbox.act(id, action));
    if (!isLost) {
      await act();
      // A notice may arrive twice and repeat its job.
      await this.#scene.work();
      return;
    }
    await this.#scene.losing(act);
    await this.#pass(wait);
  }

  #purchase(): Purchase {
    const tier = this.#random.pick(soldTiers);
    const months = 1 + this.#random.below(12);
    return { tier, months, cents: Math.min(months, 10) * monthly[tier] };
  }

  #newOrder(answer: { [name: string]: never }, { tier, months, cents }: Purchase): Order {
    const { id, cryptoAmount: amount, amountCents, checkoutUrl = "" } = answer as never as Record<string, string>;
    expect(amountCents).toBe(cents);
    const now = this.#scene.now();
    const order: Order = {
      id: id ?? "",
      tier,
      months,
      cents,
      amount: amount ?? "",
      createdAt: now,
      url: checkoutUrl,
      status: "quoted",
      failure: null,
      quoteEndsAt: now + 15 * minute,
      invoice: "",
      invoiceEndsAt: 0,
      paid: "0",
      irregularity: null,
      refundedCents: 0,
    };
    this.#model.orders.push(order);
    return order;
  }

  async #quote(): Promise<void> {
    const purchase = this.#purchase();
    this.#note("quote");
    const request = {
      tier: toTier[purchase.tier],
      months: purchase.months,
      cryptoCurrency: this.#random.pick(["btc", "xmr", "ltc"]),
    };
    const { slug, answer } = await this.#scene.call(this.#accountId, "quote", request);
    expect(slug).toBe("");
    this.#newOrder(answer, purchase);
  }

  async #open(): Promise<void> {
    const model = this.#model;
    const quoted = model.orders.filter(({ status }) => status === "quoted").at(-1);
    const ofQuote = quoted !== undefined && this.#random.chance(0.6);
    const purchase = this.#purchase();
    this.#note("open");
    const request = ofQuote
      ? { orderId: quoted.id }
      : { tier: toTier[purchase.tier], months: purchase.months, cryptoCurrency: "btc" };
    const { slug, answer } = await this.#scene.call(this.#accountId, "checkout", request);
    const { status = "ended" } = model.card ?? {};
    const isRefused =
      model.open !== undefined ||
      ["active", "past_due"].includes(status) ||
      (ofQuote && quoted.quoteEndsAt <= this.#scene.now());
    expect([this.did.at(-1), slug]).toEqual(["open", isRefused ? "conflict" : ""]);
    if (isRefused) return;
    const order = ofQuote ? quoted : this.#newOrder(answer, purchase);
    const endsAt = Math.floor(this.#scene.now() / 1_000) * 1_000 + 60 * minute;
    Object.assign(order, {
      status: "awaiting_payment",
      invoice: "New",
      invoiceEndsAt: endsAt,
      url: answer.checkoutUrl,
    });
  }

  /** Returns the open order, or an ended order of which the processor still sends notices. */
  #payable(): Order | undefined {
    const model = this.#model;
    const isWatched = ({ invoice, createdAt }: Order) => invoice !== "" && model.now < createdAt + 24 * hour;
    return model.open ?? model.orders.filter(isWatched).at(-1);
  }

  async #pay(): Promise<void> {
    const order = this.#payable();
    if (!order || order.invoice === "Processing") return;
    const model = this.#model;
    if (order.invoice === "New" && order.invoiceEndsAt <= model.now) return;
    const action = order.invoice === "New" ? this.#random.pick(["pay", "pay", "over", "little"]) : "pay";
    const amounts: Record<string, string> = {
      pay: order.amount,
      over: addDecimals(order.amount, order.amount),
      little: "0.00000001",
    };
    model.pay(order, amounts[action] ?? "");
    const wasOpen = order === model.open;
    // A cancellation of an order that has been paid is refused, since the gateway asks the processor.
    if (wasOpen && this.#random.chance(0.2)) {
      await this.#scene.losing(async () => void (await this.#scene.sandbox.act(idOf(order), action)));
      const { slug } = await this.#scene.call(this.#accountId, "cancel", { id: order.id });
      this.#note(`${action} and cancel`);
      expect(slug).toBe("conflict");
      await this.#pass(found.open);
      return;
    }
    await this.#atProcessor(idOf(order), action, wasOpen ? found.open : found.ended);
    model.look(order);
  }

  async #settle(): Promise<void> {
    const order = this.#model.open;
    if (order?.invoice !== "Processing") return;
    order.invoice = "Settled";
    await this.#atProcessor(idOf(order), "settle", found.open);
    this.#model.look(order);
  }

  async #end(): Promise<void> {
    const order = this.#model.open;
    if (!order || (order.invoice === "New" && order.invoiceEndsAt <= this.#model.now)) return;
    const isFailing = order.invoice === "Processing" || this.#random.chance(0.5);
    order.invoice = isFailing ? "Invalid" : "Expired";
    await this.#atProcessor(idOf(order), isFailing ? "fail" : "expire", found.open);
    this.#model.look(order);
  }

  async #cancel(): Promise<void> {
    const order = this.#random.chance(0.8)
      ? (this.#model.open ?? this.#model.orders.at(-1))
      : this.#model.orders.at(-1);
    if (!order) return;
    this.#note("cancel");
    const { slug, answer } = await this.#scene.call(this.#accountId, "cancel", { id: order.id });
    const mayBe = order.status === "quoted" || (order.status === "awaiting_payment" && order.paid === "0");
    expect([this.did.at(-1), slug]).toEqual(["cancel", mayBe ? "" : "conflict"]);
    if (!mayBe) return;
    expect(answer.status).toBe(CryptoOrderStatus.CANCELLED);
    order.status = "cancelled";
    if (order.invoice !== "") this.#model.look(order);
  }

  /** Runs an operator command. Returns false if it is refused. */
  async #operate(run: Parameters<MoneyScene["db"]["transaction"]>[0]): Promise<boolean> {
    try {
      await this.#scene.db.transaction(run);
      return true;
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      return false;
    }
  }

  async #refund(): Promise<void> {
    const paid = this.#model.orders.filter(({ status }) => status === "paid");
    const order = paid.length > 0 ? this.#random.pick(paid) : this.#model.orders.at(-1);
    if (!order || this.#random.chance(0.5)) return;
    this.#note("refund");
    const cents = this.#random.chance(0.5) ? order.cents : 1 + this.#random.below(order.cents);
    const { operator } = this.#scene;
    const isDone = await this.#operate((tx) => refundOrder(tx, operator, { id: order.id, cents }));
    expect([this.did.at(-1), isDone]).toEqual(["refund", order.status === "paid" && order.refundedCents === 0]);
    if (isDone) this.#model.refund(order, cents);
  }

  async #extend(): Promise<void> {
    const block = this.#model.blocks.length > 0 ? this.#random.pick(this.#model.blocks) : undefined;
    if (!block) return;
    this.#note("extend");
    const days = 1 + this.#random.below(60);
    const { operator } = this.#scene;
    const isDone = await this.#operate((tx) => extendOrder(tx, operator, { id: block.id, days }));
    expect([this.did.at(-1), isDone]).toEqual(["extend", block.hasBegun && !block.hasEnded]);
    if (!isDone) return;
    block.extended += days * day;
    block.left += days * day;
  }

  async #arrange(): Promise<void> {
    if (this.#random.chance(0.6)) return;
    const arranged = this.#random.pick(["free", "free", "personal", "api_builder"]);
    this.#note(`arrange ${arranged}`);
    const { db, arrangements } = this.#scene;
    await db.transaction((tx) => arrangements.setTier(tx, this.#accountId, tiers.get(arranged).name));
    this.#model.arranged = arranged;
    this.#model.begin();
  }

  async #subscribe(): Promise<void> {
    const model = this.#model;
    const tier = this.#random.pick(soldTiers);
    const request = { tier: toTier[tier], interval: BillingInterval.MONTH };
    const { slug, answer } = await this.#scene.call(this.#accountId, "createCheckoutSession", request);
    this.#note("subscribe");
    expect([this.did.at(-1), slug]).toEqual(["subscribe", model.card ? "conflict" : ""]);
    if (slug !== "") return;
    await this.#atProcessor(answer.id, "pay", 2 * minute);
    model.cards.push({ tier, priced: tier, next: undefined, status: "active", until: undefined, isInvoicePaid: true });
    model.begin();
    const portal = await this.#scene.call(this.#accountId, "createPortalSession", {});
    expect(portal.slug).toBe("");
    this.#portal = portal.answer.id;
  }

  async #changeCard(): Promise<void> {
    const { card } = this.#model;
    if (!card) return;
    const mayRaise = card.priced !== soldTiers.at(-1) && card.status !== "past_due";
    const action = this.#random.pick([
      "cancel",
      "resume",
      "renew",
      "renew",
      "fail",
      "end",
      ...(mayRaise ? ["raise", "raise_declined"] : []),
      ...(card.priced === soldTiers[0] ? [] : ["lower"]),
      ...(card.isInvoicePaid ? ["refund", "dispute"] : ["settle", "settle"]),
    ]);
    if ((action === "resume") !== (card.status === "cancelling") && (action === "resume" || action === "cancel"))
      return;
    if (action === "cancel" && card.status === "past_due") return;
    await this.#atProcessor(this.#portal, action, found.card);
    this.#applyToCard(card, action);
    this.#model.begin();
  }

  #applyToCard(card: Card, action: string): void {
    const { now } = this.#model;
    const beside = (by: number) => soldTiers[rankOf(card.priced) + by] ?? card.priced;
    const isCancelling = card.status === "cancelling";
    const end = () => Object.assign(card, { status: "ended", until: undefined });
    const isPaid = () =>
      Object.assign(card, { status: "active", until: undefined, tier: card.priced, isInvoicePaid: true });
    if (action === "cancel") card.status = "cancelling";
    if (action === "resume") card.status = "active";
    if (action === "end" || action === "refund" || action === "dispute") end();
    if (action === "lower") card.next = beside(-1);
    // Payment does not revoke a cancellation at the end of the period.
    if (action === "settle") Object.assign(card, { ...isPaid(), status: isCancelling ? "cancelling" : "active" });
    if (action === "renew" || action === "fail") {
      if (card.status === "cancelling") return void end();
      card.priced = card.next ?? card.priced;
      card.next = undefined;
      if (action === "renew") return void isPaid();
      // A lower tier begins even if its invoice is unpaid.
      if (rankOf(card.priced) < rankOf(card.tier)) card.tier = card.priced;
      Object.assign(card, { status: "past_due", isInvoicePaid: false, until: card.until ?? now + 14 * day });
    }
    if (action === "raise" || action === "raise_declined") {
      card.priced = beside(1);
      card.next = undefined;
      card.isInvoicePaid = action === "raise";
      if (card.isInvoicePaid) card.tier = card.priced;
    }
  }

  /** Compares the database with the model. */
  async verify(about: string): Promise<void> {
    const [model, { db }] = [this.#model, this.#scene];
    const of = sql`account_id = ${this.#accountId}`;
    // biome-ignore lint/suspicious/noExplicitAny: rows of several tables.
    const rows = async (query: ReturnType<typeof sql<any>>) => (await query.execute(db.sql)).rows;
    const [account] = await rows(sql`select tier, arranged_tier from accounts where id = ${this.#accountId}`);
    expect({ about, tier: account.tier }).toEqual({ about, tier: model.serving().tier });

    const now = this.#scene.now();
    const blocks = await rows(sql`select * from tier_grants where kind = 'block' and ${of} order by created_at, id`);
    const isRunning = model.serving().block;
    expect({
      about,
      blocks: blocks.map(({ id, left_ms, running_since, ended_at }) => ({
        id,
        left: left_ms === null ? null : Number(left_ms) - (running_since ? now - running_since.getTime() : 0),
        runs: running_since !== null,
        ended: ended_at !== null,
      })),
    }).toEqual({
      about,
      blocks: model.blocks.map((block) => ({
        id: block.id,
        left: block.hasBegun || block.hasEnded ? block.left : null,
        runs: block === isRunning,
        ended: block.hasEnded,
      })),
    });

    const orders = await rows(sql`select * from crypto_orders where ${of} and status <> 'quoted' order by id`);
    const known = model.orders.filter(({ status }) => status !== "quoted");
    expect({
      about,
      orders: orders.map((row) => [row.id, row.status, row.failure_reason, row.crypto_amount_paid, row.irregularity]),
    }).toEqual({
      about,
      orders: known.map((order) => [order.id, order.status, order.failure, order.paid, order.irregularity]),
    });
    const events = await rows(
      sql`select type, subject from events where ${of} and type like 'crypto.order.%' order by subject`,
    );
    const told = known.filter(({ status }) => status === "paid" || status === "failed");
    expect({ about, events: events.map(({ type, subject }) => [subject, type]) }).toEqual({
      about,
      events: told.map(({ id, status }) => [id, `crypto.order.${status}`]),
    });
    const paid = orders.filter(({ status }) => status === "paid");
    const { paidCents, refundedCents } = this.figures();
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    expect({
      about,
      paid: sum(paid.map(({ amount_cents }) => amount_cents)),
      refunded: sum(orders.map(({ refunded_cents }) => refunded_cents)),
      receipts: new Set(paid.map(({ receipt_number }) => receipt_number)).size,
    }).toEqual({ about, paid: paidCents, refunded: refundedCents, receipts: paid.length });

    const cards = await rows(sql`select tier, status from card_subscriptions where ${of}`);
    const sorted = (each: readonly Pick<Card, "tier" | "status">[]) =>
      each.map(({ tier, status }) => `${tier} ${status}`).toSorted();
    expect({ about, cards: sorted(cards) }).toEqual({ about, cards: sorted(model.cards) });

    // Each millisecond bought or added is served, left or forfeited, and no other one is.
    for (const { id, bought, extended, served, left, forfeited } of model.blocks)
      expect([about, id, served + left + forfeited]).toEqual([about, id, bought + extended]);
  }

  figures(): MoneyFigures {
    const { orders, blocks } = this.#model;
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      steps: this.#steps,
      paidCents: sum(orders.filter(({ status }) => status === "paid").map(({ cents }) => cents)),
      refundedCents: sum(orders.map(({ refundedCents }) => refundedCents)),
      servedMs: sum(blocks.map(({ served }) => served)),
    };
  }
}

const idOf = ({ url }: Order): string => url.slice(url.lastIndexOf("/") + 1);

import { createHmac } from "node:crypto";
import { addMonths } from "../../limits/paid-time.ts";
import type { SandboxObject } from "./sandbox-store.ts";
import { SandboxRefusal, type SandboxTools } from "./sandbox-tools.ts";

/** Seconds for which a checkout is open. */
const openFor = 86_400;

export const listed = (data: readonly SandboxObject[]): SandboxObject => ({
  object: "list",
  data,
  has_more: false,
  url: "/v1/list",
});

/** Objects of the sandbox's Stripe, and their changes. */
export class StripeObjects {
  readonly tools: SandboxTools;

  constructor(tools: SandboxTools) {
    this.tools = tools;
  }

  async #sendNotice(type: string, object: SandboxObject): Promise<void> {
    const at = this.tools.seconds();
    const event = {
      id: this.tools.nextId("evt"),
      object: "event",
      type,
      created: at,
      livemode: false,
      data: { object },
    };
    const body = JSON.stringify(event);
    const signature = createHmac("sha256", this.tools.secret).update(`${at}.${body}`).digest("hex");
    await this.tools.notify("stripe", { "stripe-signature": `t=${at},v1=${signature}` }, body);
  }

  async need(id: string, what: string): Promise<SandboxObject> {
    const object = await this.tools.store.get(id);
    if (!object) throw new SandboxRefusal(404, `No such ${what}: '${id}'`);
    return object;
  }

  async make(kind: string, prefix: string, object: SandboxObject): Promise<SandboxObject> {
    const made = {
      id: this.tools.nextId(prefix),
      object: kind,
      livemode: false,
      created: this.tools.seconds(),
      ...object,
    };
    await this.tools.store.put(kind, made);
    return made;
  }

  makePrice(form: SandboxObject): Promise<SandboxObject> {
    const { lookup_key, unit_amount, currency, recurring, product_data } = form;
    const product = this.tools.nextId("prod");
    const price = { lookup_key, currency, unit_amount: Number(unit_amount), active: true, recurring, product };
    return this.make("price", "price", { ...price, nickname: product_data?.name ?? lookup_key });
  }

  async makeCheckout(form: SandboxObject): Promise<SandboxObject> {
    const price = await this.need(form.line_items?.[0]?.price ?? "", "price");
    await this.need(form.customer, "customer");
    const id = this.tools.nextId("cs");
    const { customer, mode, success_url, cancel_url } = form;
    return this.make("checkout.session", "cs", {
      id,
      customer,
      mode,
      success_url,
      cancel_url,
      price: price.id,
      subscription: null,
      status: "open",
      payment_status: "unpaid",
      url: `${this.tools.pagesUrl}/${id}`,
      expires_at: this.tools.seconds() + openFor,
    });
  }

  /**
   * Creates the invoice of a billing period or of a change within the period, with payment and charge. `share` is the
   * fraction of the price to bill.
   */
  async #invoice(subscription: SandboxObject, paid: boolean, share: number): Promise<SandboxObject> {
    const { unit_amount, currency } = subscription.items.data[0].price;
    const amount = Math.round(unit_amount * share);
    const { customer, id } = subscription;
    const charge = await this.make("charge", "ch", {
      customer,
      amount,
      currency,
      paid,
      refunded: false,
      amount_refunded: 0,
      disputed: false,
    });
    const intent = this.tools.nextId("pi");
    const made = await this.make("invoice", "in", {
      customer,
      currency,
      amount_due: amount,
      amount_paid: paid ? amount : 0,
      status: paid ? "paid" : "open",
      parent: { type: "subscription_details", subscription_details: { subscription: id } },
    });
    await this.tools.change("charge", charge, { payment_intent: intent });
    const payment = { type: "payment_intent", payment_intent: intent };
    await this.make("invoice_payment", "inpay", { invoice: made.id, payment, status: paid ? "paid" : "open" });
    return this.tools.change("subscription", subscription, { latest_invoice: made.id, latest_charge: charge.id });
  }

  #items(price: SandboxObject, from: number): SandboxObject {
    const end = addMonths(from * 1_000, price.recurring.interval === "year" ? 12 : 1) / 1_000;
    return listed([{ id: this.tools.nextId("si"), price, current_period_start: from, current_period_end: end }]);
  }

  async #bill(subscription: SandboxObject, paid: boolean, share = 1): Promise<void> {
    const changed = await this.#invoice(subscription, paid, share);
    await this.#sendNotice(
      paid ? "invoice.paid" : "invoice.payment_failed",
      await this.need(changed.latest_invoice, "invoice"),
    );
    await this.#sendNotice("customer.subscription.updated", changed);
  }

  async subscribe(checkout: SandboxObject): Promise<void> {
    const price = await this.need(checkout.price, "price");
    const made = await this.make("subscription", "sub", {
      customer: checkout.customer,
      status: "active",
      cancel_at_period_end: false,
      ended_at: null,
      currency: price.currency,
      items: this.#items(price, this.tools.seconds()),
    });
    const subscription = await this.#invoice(made, true, 1);
    const paid = { status: "complete", payment_status: "paid", subscription: subscription.id };
    const complete = await this.tools.change("checkout.session", checkout, paid);
    await this.#sendNotice("customer.subscription.created", subscription);
    await this.#sendNotice("checkout.session.completed", complete);
    await this.#sendNotice("invoice.paid", await this.need(subscription.latest_invoice, "invoice"));
  }

  async cancel(subscription: SandboxObject): Promise<SandboxObject> {
    const ended = await this.tools.change("subscription", subscription, {
      status: "canceled",
      ended_at: this.tools.seconds(),
    });
    await this.#sendNotice("customer.subscription.deleted", ended);
    return ended;
  }

  async update(subscription: SandboxObject, changes: SandboxObject): Promise<SandboxObject> {
    const changed = await this.tools.change("subscription", subscription, changes);
    await this.#sendNotice("customer.subscription.updated", changed);
    return changed;
  }

  async #renew(subscription: SandboxObject, paid: boolean): Promise<void> {
    if (subscription.cancel_at_period_end) return void (await this.cancel(subscription));
    const [item] = subscription.items.data;
    // A downgrade starts with the next period.
    const price = subscription.next_price ?? item.price;
    const next = this.#items(price, paid ? item.current_period_end : item.current_period_start);
    const renewed = { status: paid ? "active" : "past_due", items: next, next_price: null, schedule: null };
    await this.#bill({ ...subscription, ...renewed }, paid);
  }

  async #refund(subscription: SandboxObject): Promise<void> {
    const charge = await this.need(subscription.latest_charge, "charge");
    const refunded = { refunded: true, amount_refunded: charge.amount };
    await this.#sendNotice("charge.refunded", await this.tools.change("charge", charge, refunded));
  }

  async #dispute(subscription: SandboxObject): Promise<void> {
    const charge = await this.need(subscription.latest_charge, "charge");
    await this.tools.change("charge", charge, { disputed: true });
    await this.#sendNotice(
      "charge.dispute.closed",
      await this.make("dispute", "dp", { charge: charge.id, status: "lost" }),
    );
  }

  /** Returns the next higher or lower price of the same interval. */
  async priceBeside({ items: { data } }: SandboxObject, isAbove: boolean): Promise<SandboxObject | undefined> {
    const [{ price }] = data;
    const sold = (await this.tools.store.list("price")).filter(
      ({ recurring }) => recurring.interval === price.recurring.interval,
    );
    const sorted = sold.toSorted((left, right) => left.unit_amount - right.unit_amount);
    return isAbove
      ? sorted.find(({ unit_amount }) => unit_amount > price.unit_amount)
      : sorted.findLast(({ unit_amount }) => unit_amount < price.unit_amount);
  }

  /** Upgrades to the next higher price at once, with a separate invoice. */
  async #raise(subscription: SandboxObject, paid: boolean): Promise<void> {
    const price = await this.priceBeside(subscription, true);
    if (!price) return;
    const { data } = subscription.items;
    const raised = { ...subscription, items: listed([{ ...data[0], price }]), next_price: null, schedule: null };
    await this.#bill(raised, paid, 0.5);
  }

  /** Pays the open invoice. */
  async #settle(subscription: SandboxObject): Promise<void> {
    const open = await this.need(subscription.latest_invoice, "invoice");
    if (open.status === "paid") return;
    const paid = await this.tools.change("invoice", open, { status: "paid", amount_paid: open.amount_due });
    await this.#sendNotice("invoice.paid", paid);
    await this.update(subscription, { status: "active" });
  }

  /** Returns the active or past due subscription of a customer. */
  async ofCustomer(customer: string): Promise<SandboxObject | undefined> {
    const all = await this.tools.store.list("subscription");
    return all.find((object) => object.customer === customer && ["active", "past_due"].includes(object.status));
  }

  /** Runs an action of the portal page. */
  async act(subscription: SandboxObject, action: string): Promise<void> {
    if (action === "cancel" || action === "resume")
      await this.update(subscription, { cancel_at_period_end: action === "cancel" });
    if (action === "renew" || action === "fail") await this.#renew(subscription, action === "renew");
    if (action === "raise" || action === "raise_declined") await this.#raise(subscription, action === "raise");
    if (action === "lower")
      await this.tools.change("subscription", subscription, {
        next_price: await this.priceBeside(subscription, false),
        schedule: this.tools.nextId("sub_sched"),
      });
    if (action === "settle") await this.#settle(subscription);
    if (action === "refund") await this.#refund(subscription);
    if (action === "dispute") await this.#dispute(subscription);
    if (action === "end") await this.cancel(subscription);
  }
}

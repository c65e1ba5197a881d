import { createHmac } from "node:crypto";
import { addMonths } from "../../limits/paid-time.ts";
import type { ProcessorRequest, Transport } from "../processors/transport.ts";
import type { Thing } from "./sandbox-store.ts";
import { type SandboxPage, SandboxRefusal, type SandboxTools, transportOf } from "./sandbox-tools.ts";
import { readForm } from "./stripe-form.ts";

/** Seconds for which a checkout is open. */
const openFor = 86_400;

/** Sandbox implementation of the parts of Stripe's API that we use. */
export interface SandboxCard {
  readonly transport: Transport;
  page(id: string): Promise<SandboxPage | undefined>;
  act(id: string, action: string): Promise<void>;
}

const live = (status: string): boolean => status === "active" || status === "past_due";
const money = ({ unit_amount, currency, recurring }: Thing): string =>
  `${(unit_amount / 100).toFixed(2)} ${String(currency).toUpperCase()} a ${recurring.interval}`;

export function createSandboxCard(tools: SandboxTools): SandboxCard {
  const { store, notify, nextId, seconds, change, pagesUrl, secret } = tools;

  async function sendNotice(type: string, object: Thing): Promise<void> {
    const at = seconds();
    const event = { id: nextId("evt"), object: "event", type, created: at, livemode: false, data: { object } };
    const body = JSON.stringify(event);
    const signature = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
    await notify("stripe", { "stripe-signature": `t=${at},v1=${signature}` }, body);
  }

  async function need(id: string, what: string): Promise<Thing> {
    const thing = await store.get(id);
    if (!thing) throw new SandboxRefusal(404, `No such ${what}: '${id}'`);
    return thing;
  }

  const listed = (data: readonly Thing[]): Thing => ({ object: "list", data, has_more: false, url: "/v1/list" });

  async function make(kind: string, prefix: string, thing: Thing): Promise<Thing> {
    const made = { id: nextId(prefix), object: kind, livemode: false, created: seconds(), ...thing };
    await store.put(kind, made);
    return made;
  }

  function makePrice(form: Thing): Promise<Thing> {
    const { lookup_key, unit_amount, currency, recurring, product_data } = form;
    const product = nextId("prod");
    const price = { lookup_key, currency, unit_amount: Number(unit_amount), active: true, recurring, product };
    return make("price", "price", { ...price, nickname: product_data?.name ?? lookup_key });
  }

  async function makeCheckout(form: Thing): Promise<Thing> {
    const price = await need(form.line_items?.[0]?.price ?? "", "price");
    await need(form.customer, "customer");
    const id = nextId("cs");
    const { customer, mode, success_url, cancel_url } = form;
    return make("checkout.session", "cs", {
      id,
      customer,
      mode,
      success_url,
      cancel_url,
      price: price.id,
      subscription: null,
      status: "open",
      payment_status: "unpaid",
      url: `${pagesUrl}/${id}`,
      expires_at: seconds() + openFor,
    });
  }

  /** Creates the invoice of a period or of a change within it, with payment and charge. */
  async function invoice(subscription: Thing, paid: boolean, share = 1): Promise<Thing> {
    const { unit_amount, currency } = subscription.items.data[0].price;
    const amount = Math.round(unit_amount * share);
    const { customer, id } = subscription;
    const charge = await make("charge", "ch", {
      customer,
      amount,
      currency,
      paid,
      refunded: false,
      amount_refunded: 0,
      disputed: false,
    });
    const intent = nextId("pi");
    const made = await make("invoice", "in", {
      customer,
      currency,
      amount_due: amount,
      amount_paid: paid ? amount : 0,
      status: paid ? "paid" : "open",
      parent: { type: "subscription_details", subscription_details: { subscription: id } },
    });
    await change("charge", charge, { payment_intent: intent });
    const payment = { type: "payment_intent", payment_intent: intent };
    await make("invoice_payment", "inpay", { invoice: made.id, payment, status: paid ? "paid" : "open" });
    return change("subscription", subscription, { latest_invoice: made.id, latest_charge: charge.id });
  }

  const period = (price: Thing, from: number): Thing => ({
    current_period_start: from,
    current_period_end: addMonths(from * 1_000, price.recurring.interval === "year" ? 12 : 1) / 1_000,
  });

  const items = (price: Thing, from: number): Thing => listed([{ id: nextId("si"), price, ...period(price, from) }]);

  async function subscribe(checkout: Thing): Promise<void> {
    const price = await need(checkout.price, "price");
    const made = await make("subscription", "sub", {
      customer: checkout.customer,
      status: "active",
      cancel_at_period_end: false,
      ended_at: null,
      currency: price.currency,
      items: items(price, seconds()),
    });
    const subscription = await invoice(made, true);
    const paid = { status: "complete", payment_status: "paid", subscription: subscription.id };
    const complete = await change("checkout.session", checkout, paid);
    await sendNotice("customer.subscription.created", subscription);
    await sendNotice("checkout.session.completed", complete);
    await sendNotice("invoice.paid", await need(subscription.latest_invoice, "invoice"));
  }

  async function cancel(subscription: Thing): Promise<Thing> {
    const ended = await change("subscription", subscription, { status: "canceled", ended_at: seconds() });
    await sendNotice("customer.subscription.deleted", ended);
    return ended;
  }

  async function update(subscription: Thing, changes: Thing): Promise<Thing> {
    const changed = await change("subscription", subscription, changes);
    await sendNotice("customer.subscription.updated", changed);
    return changed;
  }

  async function renew(subscription: Thing, paid: boolean): Promise<void> {
    if (subscription.cancel_at_period_end) return void (await cancel(subscription));
    const [item] = subscription.items.data;
    // A downgrade starts with the next period.
    const price = subscription.next_price ?? item.price;
    const next = items(price, paid ? item.current_period_end : item.current_period_start);
    const renewed = { status: paid ? "active" : "past_due", items: next, next_price: null, schedule: null };
    const changed = await invoice({ ...subscription, ...renewed }, paid);
    await sendNotice(paid ? "invoice.paid" : "invoice.payment_failed", await need(changed.latest_invoice, "invoice"));
    await sendNotice("customer.subscription.updated", changed);
  }

  async function refund(subscription: Thing): Promise<void> {
    const charge = await need(subscription.latest_charge, "charge");
    const refunded = { refunded: true, amount_refunded: charge.amount };
    await sendNotice("charge.refunded", await change("charge", charge, refunded));
  }

  async function dispute(subscription: Thing): Promise<void> {
    const charge = await need(subscription.latest_charge, "charge");
    await change("charge", charge, { disputed: true });
    await sendNotice("charge.dispute.closed", await make("dispute", "dp", { charge: charge.id, status: "lost" }));
  }

  /** Returns the next higher or lower price of the same interval. */
  async function priceBeside({ items: { data } }: Thing, isAbove: boolean): Promise<Thing | undefined> {
    const [{ price }] = data;
    const sold = (await store.list("price")).filter(({ recurring }) => recurring.interval === price.recurring.interval);
    const sorted = sold.toSorted((left, right) => left.unit_amount - right.unit_amount);
    return isAbove
      ? sorted.find(({ unit_amount }) => unit_amount > price.unit_amount)
      : sorted.findLast(({ unit_amount }) => unit_amount < price.unit_amount);
  }

  /** Upgrades to the next higher price at once, with a separate invoice. */
  async function raise(subscription: Thing, paid: boolean): Promise<void> {
    const price = await priceBeside(subscription, true);
    if (!price) return;
    const { data } = subscription.items;
    const raised = { ...subscription, items: listed([{ ...data[0], price }]), next_price: null, schedule: null };
    const changed = await invoice(raised, paid, 0.5);
    await sendNotice(paid ? "invoice.paid" : "invoice.payment_failed", await need(changed.latest_invoice, "invoice"));
    await sendNotice("customer.subscription.updated", changed);
  }

  /** Pays the open invoice. */
  async function settle(subscription: Thing): Promise<void> {
    const open = await need(subscription.latest_invoice, "invoice");
    if (open.status === "paid") return;
    const paid = await change("invoice", open, { status: "paid", amount_paid: open.amount_due });
    await sendNotice("invoice.paid", paid);
    await update(subscription, { status: "active" });
  }

  const routes = async ({ method, url, body }: ProcessorRequest & { url: URL }): Promise<Thing | undefined> => {
    const form = readForm(new URLSearchParams(method === "GET" ? url.search : body));
    const [, collection = "", id = "", verb = ""] =
      /^\/v1\/((?:checkout\/|billing_portal\/)?[a-z_]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(url.pathname) ?? [];
    const where = (things: readonly Thing[], name: string) =>
      form[name] === undefined ? things : things.filter((thing) => thing[name] === form[name]);
    switch (`${method} ${collection}${id ? "/:id" : ""}${verb ? `/${verb}` : ""}`) {
      case "POST customers":
        return make("customer", "cus", { metadata: form.metadata ?? {} });
      case "GET prices": {
        const prices = await store.list("price");
        const keys = form.lookup_keys && Object.values(form.lookup_keys);
        return listed(
          keys ? prices.filter(({ lookup_key }) => keys.includes(lookup_key)) : prices.slice(0, form.limit),
        );
      }
      case "GET prices/:id":
        return need(id, "price");
      case "POST prices":
        return makePrice(form);
      case "POST checkout/sessions":
        return makeCheckout(form);
      case "GET checkout/sessions/:id":
        return need(id, "checkout session");
      case "POST checkout/sessions/:id/expire": {
        const session = await need(id, "checkout session");
        if (session.status !== "open") throw new SandboxRefusal(400, `the checkout session is ${session.status}`);
        return change("checkout.session", session, { status: "expired" });
      }
      case "GET billing_portal/configurations":
        return listed(await store.list("billing_portal.configuration"));
      case "POST billing_portal/configurations":
        return make("billing_portal.configuration", "bpc", { active: true, metadata: form.metadata ?? {} });
      case "POST billing_portal/sessions": {
        const { customer, return_url, configuration } = form;
        await need(customer, "customer");
        await need(configuration, "configuration");
        const session = nextId("bps");
        return make("billing_portal.session", "bps", {
          id: session,
          customer,
          return_url,
          url: `${pagesUrl}/${session}`,
        });
      }
      case "GET subscriptions": {
        const found = where(await store.list("subscription"), "customer");
        return listed(
          await Promise.all(
            found.map(async (each) => ({ ...each, latest_invoice: await need(each.latest_invoice, "invoice") })),
          ),
        );
      }
      case "POST subscriptions/:id": {
        const subscription = await need(id, "subscription");
        if (subscription.schedule) throw new SandboxRefusal(400, "the subscription is managed by a schedule");
        const metadata = { ...subscription.metadata, ...form.metadata };
        return update(subscription, { cancel_at_period_end: form.cancel_at_period_end === "true", metadata });
      }
      case "POST subscription_schedules/:id/release": {
        const held = (await store.list("subscription")).find(({ schedule }) => schedule === id);
        if (!held) throw new SandboxRefusal(404, `No such schedule: '${id}'`);
        await change("subscription", held, { schedule: null, next_price: null });
        return { id, object: "subscription_schedule", status: "released" };
      }
      case "DELETE subscriptions/:id":
        return cancel(await need(id, "subscription"));
      case "GET charges":
        return listed(where(await store.list("charge"), "customer"));
      case "GET charges/:id":
        return need(id, "charge");
      case "GET disputes":
        return listed(where(await store.list("dispute"), "charge"));
      case "GET invoices/:id":
        return need(id, "invoice");
      case "GET invoice_payments": {
        const wanted = form.payment?.payment_intent;
        return listed((await store.list("invoice_payment")).filter(({ payment }) => payment.payment_intent === wanted));
      }
      default:
        return undefined;
    }
  };

  const ofCustomer = async (customer: string): Promise<Thing | undefined> =>
    (await store.list("subscription")).find((thing) => thing.customer === customer && live(thing.status));

  async function checkoutPage({ status, price, success_url, cancel_url }: Thing): Promise<SandboxPage> {
    const { nickname, ...cost } = await need(price, "price");
    const isOpen = status === "open";
    return {
      title: isOpen ? "Pay by card" : `This checkout is ${status}`,
      lines: [`${nickname}: ${money(cost)}`, "This is a sandbox: no money moves."],
      actions: isOpen ? { pay: "Pay", decline: "Decline the card" } : {},
      backUrl: status === "complete" ? success_url : cancel_url,
    };
  }

  async function portalPage({ customer, return_url }: Thing): Promise<SandboxPage> {
    const subscription = await ofCustomer(customer);
    const lines = ["This is a sandbox: no money moves."];
    const page = { title: "Your subscription", backUrl: return_url };
    if (!subscription) return { ...page, lines: ["There is no subscription.", ...lines], actions: {} };
    const { status, cancel_at_period_end: ends, items } = subscription;
    const [{ price, current_period_end }] = items.data;
    const { status: invoiced } = await need(subscription.latest_invoice, "invoice");
    const next = subscription.next_price;
    const until = new Date(current_period_end * 1_000).toISOString().slice(0, 10);
    return {
      ...page,
      lines: [
        `${price.nickname}: ${money(price)}`,
        `Status: ${status}. It is paid until ${until}${ends ? ", and ends then" : ""}.`,
        ...(next ? [`From then on ${next.nickname}: ${money(next)}.`] : []),
        ...lines,
      ],
      actions: {
        ...(ends ? { resume: "Resume the subscription" } : { cancel: "Cancel at the end of the paid period" }),
        renew: "Make the next payment succeed",
        fail: "Make the next payment fail",
        ...((await priceBeside(subscription, true)) && {
          raise: "Change to a higher tier",
          raise_declined: "Change to a higher tier, and decline the card",
        }),
        ...((await priceBeside(subscription, false)) && { lower: "Change to a lower tier" }),
        ...(invoiced !== "paid" && { settle: "Pay the open invoice" }),
        refund: "Refund the last payment",
        dispute: "Lose the last payment in a dispute",
        end: "Cancel at once",
      },
    };
  }

  async function actOnSubscription(subscription: Thing, action: string): Promise<void> {
    if (action === "cancel" || action === "resume")
      await update(subscription, { cancel_at_period_end: action === "cancel" });
    if (action === "renew" || action === "fail") await renew(subscription, action === "renew");
    if (action === "raise" || action === "raise_declined") await raise(subscription, action === "raise");
    if (action === "lower")
      await change("subscription", subscription, {
        next_price: await priceBeside(subscription, false),
        schedule: nextId("sub_sched"),
      });
    if (action === "settle") await settle(subscription);
    if (action === "refund") await refund(subscription);
    if (action === "dispute") await dispute(subscription);
    if (action === "end") await cancel(subscription);
  }

  return {
    transport: transportOf(routes, (_, message) => ({ error: { type: "invalid_request_error", message } })),
    async page(id) {
      const thing = await store.get(id);
      if (thing?.object === "checkout.session") return checkoutPage(thing);
      return thing?.object === "billing_portal.session" ? portalPage(thing) : undefined;
    },
    async act(id, action) {
      const thing = await store.get(id);
      if (thing?.object === "checkout.session" && thing.status === "open" && action === "pay") await subscribe(thing);
      if (thing?.object !== "billing_portal.session") return;
      const subscription = await ofCustomer(thing.customer);
      if (subscription) await actOnSubscription(subscription, action);
    },
  };
}

import type { SandboxObject } from "./sandbox-store.ts";
import { type Routes, SandboxRefusal } from "./sandbox-tools.ts";
import { readForm } from "./stripe-form.ts";
import { listed, type StripeObjects } from "./stripe-objects.ts";

interface StripeRequest {
  readonly id: string;
  readonly form: SandboxObject;
}

const where = (form: SandboxObject, objects: readonly SandboxObject[], name: string) =>
  form[name] === undefined ? objects : objects.filter((object) => object[name] === form[name]);

/** Handlers by method and path. */
const handlers: Readonly<Record<string, (stripe: StripeObjects, request: StripeRequest) => Promise<SandboxObject>>> = {
  "POST customers": (stripe, { form }) => stripe.make("customer", "cus", { metadata: form.metadata ?? {} }),
  "GET prices": async (stripe, { form }) => {
    const prices = await stripe.tools.store.list("price");
    const keys = form.lookup_keys && Object.values(form.lookup_keys);
    return listed(keys ? prices.filter(({ lookup_key }) => keys.includes(lookup_key)) : prices.slice(0, form.limit));
  },
  "GET prices/:id": (stripe, { id }) => stripe.need(id, "price"),
  "POST prices": (stripe, { form }) => stripe.makePrice(form),
  "POST checkout/sessions": (stripe, { form }) => stripe.makeCheckout(form),
  "GET checkout/sessions/:id": (stripe, { id }) => stripe.need(id, "checkout session"),
  "POST checkout/sessions/:id/expire": async (stripe, { id }) => {
    const session = await stripe.need(id, "checkout session");
    if (session.status !== "open") throw new SandboxRefusal(400, `the checkout session is ${session.status}`);
    return stripe.tools.change("checkout.session", session, { status: "expired" });
  },
  "GET billing_portal/configurations": async (stripe) =>
    listed(await stripe.tools.store.list("billing_portal.configuration")),
  "POST billing_portal/configurations": (stripe, { form }) =>
    stripe.make("billing_portal.configuration", "bpc", { active: true, metadata: form.metadata ?? {} }),
  "POST billing_portal/sessions": async (stripe, { form }) => {
    const { customer, return_url, configuration } = form;
    await stripe.need(customer, "customer");
    await stripe.need(configuration, "configuration");
    const session = stripe.tools.nextId("bps");
    return stripe.make("billing_portal.session", "bps", {
      id: session,
      customer,
      return_url,
      url: `${stripe.tools.pagesUrl}/${session}`,
    });
  },
  "GET subscriptions": async (stripe, { form }) => {
    const found = where(form, await stripe.tools.store.list("subscription"), "customer");
    return listed(
      await Promise.all(
        found.map(async (each) => ({ ...each, latest_invoice: await stripe.need(each.latest_invoice, "invoice") })),
      ),
    );
  },
  "POST subscriptions/:id": async (stripe, { form, id }) => {
    const subscription = await stripe.need(id, "subscription");
    if (subscription.schedule) throw new SandboxRefusal(400, "the subscription is managed by a schedule");
    const metadata = { ...subscription.metadata, ...form.metadata };
    return stripe.update(subscription, { cancel_at_period_end: form.cancel_at_period_end === "true", metadata });
  },
  "POST subscription_schedules/:id/release": async (stripe, { id }) => {
    const held = (await stripe.tools.store.list("subscription")).find(({ schedule }) => schedule === id);
    if (!held) throw new SandboxRefusal(404, `No such schedule: '${id}'`);
    await stripe.tools.change("subscription", held, { schedule: null, next_price: null });
    return { id, object: "subscription_schedule", status: "released" };
  },
  "DELETE subscriptions/:id": async (stripe, { id }) => stripe.cancel(await stripe.need(id, "subscription")),
  "GET charges": async (stripe, { form }) => listed(where(form, await stripe.tools.store.list("charge"), "customer")),
  "GET charges/:id": (stripe, { id }) => stripe.need(id, "charge"),
  "GET disputes": async (stripe, { form }) => listed(where(form, await stripe.tools.store.list("dispute"), "charge")),
  "GET invoices/:id": (stripe, { id }) => stripe.need(id, "invoice"),
  "GET invoice_payments": async (stripe, { form }) => {
    const wanted = form.payment?.payment_intent;
    return listed(
      (await stripe.tools.store.list("invoice_payment")).filter(({ payment }) => payment.payment_intent === wanted),
    );
  },
};

/** Creates the request handler of the sandbox's Stripe. */
export function stripeRoutes(stripe: StripeObjects): Routes {
  return async ({ method, url, body }) => {
    const form = readForm(new URLSearchParams(method === "GET" ? url.search : body));
    const [, collection = "", id = "", verb = ""] =
      /^\/v1\/((?:checkout\/|billing_portal\/)?[a-z_]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(url.pathname) ?? [];
    return handlers[`${method} ${collection}${id ? "/:id" : ""}${verb ? `/${verb}` : ""}`]?.(stripe, { id, form });
  };
}

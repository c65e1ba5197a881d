import { type SandboxProcessor, type SandboxTools, transportOf } from "./sandbox-tools.ts";
import { StripeObjects } from "./stripe-objects.ts";
import { checkoutPage, portalPage } from "./stripe-pages.ts";
import { stripeRoutes } from "./stripe-routes.ts";

/** Creates a sandbox of the parts of Stripe's API that we use. */
export function createSandboxCard(tools: SandboxTools): SandboxProcessor {
  const { store } = tools;
  const stripe = new StripeObjects(tools);
  return {
    transport: transportOf(stripeRoutes(stripe), (_, message) => ({
      error: { type: "invalid_request_error", message },
    })),
    async page(id) {
      const thing = await store.get(id);
      if (thing?.object === "checkout.session") return checkoutPage(stripe, thing);
      return thing?.object === "billing_portal.session" ? portalPage(stripe, thing) : undefined;
    },
    async act(id, action) {
      const thing = await store.get(id);
      if (thing?.object === "checkout.session" && thing.status === "open" && action === "pay")
        await stripe.subscribe(thing);
      if (thing?.object !== "billing_portal.session") return;
      const subscription = await stripe.ofCustomer(thing.customer);
      if (subscription) await stripe.act(subscription, action);
    },
  };
}

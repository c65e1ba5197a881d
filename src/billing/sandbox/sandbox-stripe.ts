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
      const found = await store.get(id);
      if (found?.object === "checkout.session") return checkoutPage(stripe, found);
      return found?.object === "billing_portal.session" ? portalPage(stripe, found) : undefined;
    },
    async act(id, action) {
      const found = await store.get(id);
      if (found?.object === "checkout.session" && found.status === "open" && action === "pay")
        await stripe.subscribe(found);
      if (found?.object !== "billing_portal.session") return;
      const subscription = await stripe.ofCustomer(found.customer);
      if (subscription) await stripe.act(subscription, action);
    },
  };
}

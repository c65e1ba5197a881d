import { createHash } from "node:crypto";
import type Stripe from "stripe";
import type { Database } from "../platform/postgres/database.ts";
import { type PriceInterval, type Prices, tierPriceOf } from "../platform/tier-prices.ts";
import { tierText } from "./billing-mails.ts";
import type { CardProcessor } from "./processors.ts";
import { findPrice, savePrice } from "./store.ts";

/** Prices and portal configuration at the card processor. */
export interface CardCatalog {
  /** Returns the identifier of a tier's price, creating the price if needed. */
  price(card: CardProcessor, tier: string, interval: PriceInterval, cents: number): Promise<string>;
  /** Returns the identifier of the portal configuration. Upgrades start when paid, downgrades with the next period. */
  portal(card: CardProcessor): Promise<string>;
}

const sold = ["personal", "api_builder", "api_scale"].flatMap((tier) =>
  (["month", "year"] as const).map((interval) => ({ tier, interval })),
);

/** Metadata key of our portal configurations. The value is a digest of the price identifiers. */
const digestKey = "pilothouse";

/** Returns the settings of the portal: its actions, and the prices that a customer can change to. */
function portalFeatures(prices: readonly Stripe.Price[]): Stripe.BillingPortal.ConfigurationCreateParams.Features {
  const productOf = ({ product }: Stripe.Price): string => (typeof product === "string" ? product : product.id);
  const products = [...Map.groupBy(prices, productOf)].map(([product, of]) => ({
    product,
    prices: of.map(({ id }) => id),
  }));
  return {
    customer_update: { enabled: true, allowed_updates: ["email", "address", "tax_id"] },
    invoice_history: { enabled: true },
    payment_method_update: { enabled: true },
    subscription_cancel: { enabled: true, mode: "at_period_end" },
    subscription_update: {
      enabled: true,
      default_allowed_updates: ["price"],
      proration_behavior: "always_invoice",
      products,
      schedule_at_period_end: { conditions: [{ type: "decreasing_item_amount" }, { type: "shortening_interval" }] },
    },
  };
}

/** Creates the catalog. Prices and configurations are created at the processor on first use. */
export function createCardCatalog({ db, prices }: { readonly db: Database; readonly prices: Prices }): CardCatalog {
  let configuration: string | undefined;

  async function price({ client, isSandbox }: CardProcessor, tier: string, interval: PriceInterval, cents: number) {
    const { currency } = prices;
    const wanted = { tier, interval, amount_cents: cents, currency, sandbox: isSandbox };
    const known = await findPrice(db, wanted);
    if (known) return known.id;
    const lookupKey = `pilothouse_${tier}_${interval}`;
    const { data } = await client.prices.list({ lookup_keys: [lookupKey], active: true, limit: 10 });
    const same = data.find(
      ({ unit_amount, currency: its, recurring }) =>
        unit_amount === cents && its === currency && recurring?.interval === interval,
    );
    const made =
      same ??
      (await client.prices.create({
        currency,
        unit_amount: cents,
        recurring: { interval },
        tax_behavior: "inclusive",
        lookup_key: lookupKey,
        transfer_lookup_key: true,
        product_data: { name: `Pilothouse ${tierText(tier)}` },
      }));
    await savePrice(db, { ...wanted, id: made.id });
    return made.id;
  }

  async function findPortal(card: CardProcessor): Promise<string> {
    const { client } = card;
    const ids: string[] = [];
    for (const { tier, interval } of sold) {
      const cents = tierPriceOf(prices, tier, interval);
      if (cents !== undefined) ids.push(await price(card, tier, interval, cents));
    }
    // Each set of prices needs its own configuration.
    const digest = createHash("sha256").update(ids.join()).digest("hex").slice(0, 32);
    const { data } = await client.billingPortal.configurations.list({ active: true, limit: 100 });
    const found = data.find(({ metadata }) => metadata?.[digestKey] === digest);
    if (found) return found.id;
    const features = portalFeatures(await Promise.all(ids.map((id) => client.prices.retrieve(id))));
    const made = await client.billingPortal.configurations.create(
      { features, metadata: { [digestKey]: digest } },
      { idempotencyKey: `portal-${digest}` },
    );
    return made.id;
  }

  return {
    price,
    async portal(card) {
      configuration ??= await findPortal(card);
      return configuration;
    },
  };
}

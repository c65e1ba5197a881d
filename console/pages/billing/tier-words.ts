import { Tier } from "../../../src/gen/pilothouse/v1/account_pb.ts";

const names: Readonly<Record<Tier, string>> = {
  [Tier.UNSPECIFIED]: "Unknown",
  [Tier.FREE]: "Free",
  [Tier.PERSONAL]: "Personal",
  [Tier.API_BUILDER]: "API Builder",
  [Tier.API_SCALE]: "API Scale",
  [Tier.ENTERPRISE]: "Enterprise",
};

export const tierName = (tier: Tier): string => names[tier] ?? "Unknown";

/** Returns an amount such as `$19`. */
export function moneyText(cents: number, currency: string): string {
  const format = new Intl.NumberFormat(undefined, {
    style: "currency",
    currency: currency.toUpperCase(),
    minimumFractionDigits: cents % 100 === 0 ? 0 : 2,
  });
  return format.format(cents / 100);
}

interface Prices {
  readonly currency: string;
  /** Cents by tier and interval, such as `personal_month`. */
  readonly cents: Readonly<Record<string, number>>;
}

const pricesText = document.querySelector<HTMLMetaElement>("meta[name=prices]")?.content ?? "";

// Cast: the gateway writes the prices.
const prices: Prices | undefined = pricesText.startsWith("{") ? (JSON.parse(pricesText) as Prices) : undefined;

const priceNames: ReadonlyMap<Tier, string> = new Map([
  [Tier.PERSONAL, "personal"],
  [Tier.API_BUILDER, "api_builder"],
  [Tier.API_SCALE, "api_scale"],
]);

/** Returns the price of a tier on sale, such as `$19`. */
export function tierPrice(tier: Tier, interval: "month" | "year"): string | undefined {
  const cents = prices?.cents[`${priceNames.get(tier)}_${interval}`];
  return prices && cents !== undefined ? moneyText(cents, prices.currency) : undefined;
}

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

import { ConfigError, type EnvironmentReader } from "./environment.ts";

export type PriceInterval = "month" | "year";

/** Prices in cents, including tax, by `<tier>_<interval>`. */
const table = {
  personal_month: 1_900,
  personal_year: 19_000,
  api_builder_month: 4_900,
  api_builder_year: 49_000,
  api_scale_month: 49_900,
  api_scale_year: 499_000,
} as const;

/** A tier with an interval, such as `personal_month`. */
export type PriceName = keyof typeof table;

export interface Prices {
  /** ISO 4217, in lower case. */
  readonly currency: string;
  readonly cents: Readonly<Record<PriceName, number>>;
}

const isPriceName = (name: string): name is PriceName => Object.hasOwn(table, name);

/** Returns the price of a tier, or undefined if it is not sold. */
export function tierPriceOf({ cents }: Prices, tier: string, interval: PriceInterval): number | undefined {
  const name = `${tier}_${interval}`;
  return isPriceName(name) ? cents[name] : undefined;
}

/**
 * Reads the currency (default: `usd`), and the prices with overrides of the defaults, such as
 * `PRICES=personal_month=2100,api_scale_year=600000`.
 */
export function readPrices(read: EnvironmentReader): Prices {
  const isItem = (item: string): boolean => {
    const [, name = "", amount = ""] = /^([a-z_]+)=(\d{1,8})$/.exec(item) ?? [];
    return isPriceName(name) && Number(amount) >= 100;
  };
  const accepts = "`<tier>_<month or year>=<cents, at least 100>`, such as `personal_month=2100`";
  const given = read.list("PRICES", accepts, isItem).map((item) => {
    const [name, amount] = item.split("=");
    return [name, Number(amount)] as const;
  });
  const currency = read.text("PRICE_CURRENCY") ?? "usd";
  // Amounts are in cents, so currencies without cents are not supported.
  if (!/^(usd|eur|gbp|chf|cad|aud|nzd|sek|nok|dkk|pln|czk)$/.test(currency))
    throw new ConfigError("PRICE_CURRENCY", "accepts a currency with cents in lower case, such as `usd` or `eur`");
  return { currency, cents: { ...table, ...Object.fromEntries(given) } };
}

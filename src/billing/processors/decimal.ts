/** An exact decimal number: `digits` divided by ten to the power of `scale`. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** A decimal number. Amounts with more than 30 digits on one side of the point do not occur in any currency. */
const pattern = /^(\d{1,30})(?:\.(\d{1,30}))?$/;

/** Decimal places of cryptocurrencies; the default is eight. */
const places: Readonly<Record<string, number>> = { xmr: 12, eth: 18, usdt: 6, usdc: 6 };

function parse(text: string): Decimal {
  const [, whole, fraction = ""] = pattern.exec(text) ?? [];
  if (whole === undefined) throw new Error("expected a decimal number");
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

function write({ digits, scale }: Decimal): string {
  const text = String(digits).padStart(scale + 1, "0");
  const [whole, fraction] = [text.slice(0, text.length - scale), text.slice(text.length - scale).replace(/0+$/, "")];
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

const scaled = ({ digits, scale }: Decimal, to: number): bigint => digits * 10n ** BigInt(to - scale);

/** Removes leading zeros and trailing decimal zeros. Throws if the text is not a decimal number. */
export const plainDecimal = (text: string): string => write(parse(text));

/** Compares two decimal numbers; negative if the first is less. */
export function compareDecimals(left: string, right: string): number {
  const [one, other] = [parse(left), parse(right)];
  const scale = Math.max(one.scale, other.scale);
  const [first, second] = [scaled(one, scale), scaled(other, scale)];
  return first < second ? -1 : Number(first > second);
}

export function addDecimals(left: string, right: string): string {
  const [one, other] = [parse(left), parse(right)];
  const scale = Math.max(one.scale, other.scale);
  return write({ digits: scaled(one, scale) + scaled(other, scale), scale });
}

/** Converts cents to a cryptocurrency, rounded up to the smallest unit. `rate` is the price of one unit. */
export function cryptoAmount(cents: number, rate: string, currency: string): string {
  const price = parse(rate);
  if (price.digits <= 0n) throw new Error("expected a positive price of the cryptocurrency");
  const scale = places[currency] ?? 8;
  // cents / 100 / (digits / 10^s), in units of 10^-scale.
  const [over, under] = [BigInt(cents) * 10n ** BigInt(price.scale + scale), 100n * price.digits];
  return write({ digits: (over + under - 1n) / under, scale });
}

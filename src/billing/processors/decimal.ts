/** A decimal number, exactly: `digits` over ten to the power of `scale`. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** Longer amounts mean nothing in any currency. */
const pattern = /^(\d{1,30})(?:\.(\d{1,30}))?$/;

/** Places after the point of the cryptocurrencies that have others than eight. */
const places: Readonly<Record<string, number>> = { xmr: 12, eth: 18, usdt: 6, usdc: 6 };

function parse(text: string): Decimal {
  const [, whole, fraction = ""] = pattern.exec(text) ?? [];
  if (whole === undefined) throw new Error("an amount is no decimal number");
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

function write({ digits, scale }: Decimal): string {
  const text = String(digits).padStart(scale + 1, "0");
  const [whole, fraction] = [text.slice(0, text.length - scale), text.slice(text.length - scale).replace(/0+$/, "")];
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

const scaled = ({ digits, scale }: Decimal, to: number): bigint => digits * 10n ** BigInt(to - scale);

/** Writes a decimal number without needless zeros. Throws for what is none. */
export const plainDecimal = (text: string): string => write(parse(text));

/** Compares two decimal numbers: negative when the first is less. */
export function compareDecimals(left: string, right: string): number {
  const [one, other] = [parse(left), parse(right)];
  const scale = Math.max(one.scale, other.scale);
  const [first, second] = [scaled(one, scale), scaled(other, scale)];
  return first < second ? -1 : Number(first > second);
}

/** Adds decimal numbers. */
export function addDecimals(left: string, right: string): string {
  const [one, other] = [parse(left), parse(right)];
  const scale = Math.max(one.scale, other.scale);
  return write({ digits: scaled(one, scale) + scaled(other, scale), scale });
}

/** What cents cost in a cryptocurrency at the price of one unit of it, rounded up to its smallest part. */
export function cryptoAmount(cents: number, rate: string, currency: string): string {
  const price = parse(rate);
  if (price.digits <= 0n) throw new Error("a cryptocurrency has no price");
  const scale = places[currency] ?? 8;
  // cents / 100 / (digits / 10^s) in parts of 10^-scale.
  const [over, under] = [BigInt(cents) * 10n ** BigInt(price.scale + scale), 100n * price.digits];
  return write({ digits: (over + under - 1n) / under, scale });
}

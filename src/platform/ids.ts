import { randomBytes } from "node:crypto";
import type { Clock } from "./clock.ts";

/** Identifier: a prefix such as `ses`, an underscore, and 26 characters that sort by time. */
export type Id<Prefix extends string> = `${Prefix}_${string}`;

export interface Ids {
  next<Prefix extends string>(prefix: Prefix): Id<Prefix>;
}

/** Crockford's base 32 (crockford.com/base32.html) in lower case, without i, l, o and u. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const randomBits = 80n;
const randomLimit = 1n << randomBits;

/** Regular expression source of an identifier's part after the prefix. */
export const idCharacters = `[${alphabet}]{26}`;

/** Returns the lowest identifier of a time in Unix milliseconds. */
export function lowestId<Prefix extends string>(prefix: Prefix, time: number): Id<Prefix> {
  return `${prefix}_${toBase32(BigInt(time) << randomBits, 26)}`;
}

/** Returns the creation time of an identifier in Unix milliseconds. */
export function timeOfId(id: string): number {
  return Number(parseBase32(id.slice(-26)) >> randomBits);
}

/** Returns a pattern for identifiers with a prefix. */
export function idPattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}_${idCharacters}$`);
}

/** Pairs of digits, indexed by 10 bits. */
const pairs = Array.from({ length: 1024 }, (_, bits) => alphabet.charAt(bits >> 5) + alphabet.charAt(bits & 31));

/** Formats the lowest bits of a number in base 32, most significant digit first. */
export function toBase32(value: bigint, length: number): string {
  let text = "";
  // Six digits per step, because each bigint operation costs 40 ns.
  for (let rest = value; text.length < length; rest >>= 30n) {
    const bits = Number(rest & 0x3fff_ffffn);
    text = `${pairs[bits >> 20]}${pairs[(bits >> 10) & 1023]}${pairs[bits & 1023]}${text}`;
  }
  return text.slice(-length);
}

/** Parses a number in base 32. */
function parseBase32(text: string): bigint {
  return [...text].reduce((value, digit) => (value << 5n) | BigInt(alphabet.indexOf(digit)), 0n);
}

/** Creates a deterministic generator that starts with `first`, an identifier of 26 characters without prefix. */
export function repeatIds(first: string): Ids {
  let next = parseBase32(first);
  return { next: (prefix) => `${prefix}_${toBase32(next++, 26)}` };
}

/** Creates a generator of 80-bit random numbers. Reads random bytes in batches, because each call takes 4 us. */
function createRandom(): () => bigint {
  const bytes = Number(randomBits) / 8;
  let pool = Buffer.alloc(0);
  return () => {
    if (pool.length === 0) pool = randomBytes(bytes * 128);
    const taken = pool.subarray(0, bytes);
    pool = pool.subarray(bytes);
    return BigInt(`0x${taken.toString("hex")}`);
  };
}

/** Encodes the lower 5 bits of each byte in base 32. */
export function base32Text(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet.charAt(byte & 31)).join("");
}

/** Returns random text in base 32, with 5 bits per character. */
export function randomText(length: number): string {
  return base32Text(randomBytes(length));
}

/**
 * Creates a generator of identifiers with 48 bits of time and 80 random bits, like ULIDs (github.com/ulid/spec). Within
 * a millisecond, or if the clock steps back, the random part is incremented: identifiers of a process always increase.
 */
export function createIds(clock: Pick<Clock, "now">): Ids {
  let time = 0;
  let random = 0n;
  const nextRandom = createRandom();
  return {
    next(prefix) {
      const now = clock.now();
      if (now > time) {
        time = now;
        random = nextRandom();
      } else {
        random = (random + 1n) % randomLimit;
        if (random === 0n) time += 1;
      }
      return `${prefix}_${toBase32((BigInt(time) << randomBits) | random, 26)}`;
    },
  };
}

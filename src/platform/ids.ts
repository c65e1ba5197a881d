import { randomBytes } from "node:crypto";
import type { Clock } from "./clock.ts";

/** An identifier of one kind of thing: its prefix, such as `ses`, underscore, 26 characters that sort by time. */
export type Id<Prefix extends string> = `${Prefix}_${string}`;

/** Makes identifiers. */
export interface Ids {
  next<Prefix extends string>(prefix: Prefix): Id<Prefix>;
}

/** Crockford's base 32 (crockford.com/base32.html), in lower case: no i, l, o or u. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const randomBits = 80n;
const randomLimit = 1n << randomBits;

/** A regular expression source that matches what follows the prefix of an identifier. */
export const idCharacters = `[${alphabet}]{26}`;

/** Gives the lowest identifier of a time, in milliseconds since the Unix epoch: all that are made then or later follow it. */
export function lowestId<Prefix extends string>(prefix: Prefix, time: number): Id<Prefix> {
  return `${prefix}_${toBase32(BigInt(time) << randomBits, 26)}`;
}

/** Reads when an identifier was made, in milliseconds since the Unix epoch. */
export function timeOfId(id: string): number {
  return Number(parseBase32(id.slice(-26)) >> randomBits);
}

/** Matches the identifiers of one kind. */
export function idPattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}_${idCharacters}$`);
}

/** Pairs of digits, by the ten bits that they stand for. */
const pairs = Array.from({ length: 1024 }, (_, bits) => alphabet.charAt(bits >> 5) + alphabet.charAt(bits & 31));

/** Writes the lowest bits of a number in base 32, most significant digit first. */
export function toBase32(value: bigint, length: number): string {
  let text = "";
  // Six digits at a time: every step of a bigint costs 40 ns.
  for (let rest = value; text.length < length; rest >>= 30n) {
    const bits = Number(rest & 0x3fff_ffffn);
    text = `${pairs[bits >> 20]}${pairs[(bits >> 10) & 1023]}${pairs[bits & 1023]}${text}`;
  }
  return text.slice(-length);
}

/** Reads a number in base 32. */
function parseBase32(text: string): bigint {
  return [...text].reduce((value, digit) => (value << 5n) | BigInt(alphabet.indexOf(digit)), 0n);
}

/** Gives the same identifiers each time that it is made from the same text of 26 characters: this one, and those after it. */
export function repeatIds(first: string): Ids {
  let next = parseBase32(first);
  return { next: (prefix) => `${prefix}_${toBase32(next++, 26)}` };
}

/** Makes random numbers of 80 bits. The system is asked for many at once: asking for each alone takes 4 us. */
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

/** Writes the lower five bits of each byte in base 32. */
export function base32Text(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet.charAt(byte & 31)).join("");
}

/** Makes random text in base 32, five bits a character. */
export function randomText(length: number): string {
  return base32Text(randomBytes(length));
}

/**
 * Makes identifiers of 48 bits of time and 80 random bits, as ULIDs are (github.com/ulid/spec). Within one millisecond,
 * and when the clock steps back, the random part counts up, so that identifiers of one process always grow.
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

import type { ServedMethod } from "../src/registry.ts";

const mebibyte = 1024 * 1024;

/** The largest message in bytes that a client may send to a method: what the method says, else as much as a REST body. */
export function longestMessage({ rules }: ServedMethod): number {
  return rules.maxMessageBytes || mebibyte;
}

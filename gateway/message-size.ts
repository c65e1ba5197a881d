import type { ServedMethod } from "../src/kernel/registry.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** Largest body, in bytes, of requests that need no key: to public methods and to pages. */
export const longestPublicBody = 16 * kibibyte;

/**
 * Returns the largest message in bytes that a client may send over gRPC and Connect: `max_message_bytes` of the method.
 * The default is 16 KiB for public methods and 1 MiB for others, and also applies to relaying methods, because their
 * messages are sent in parts.
 */
export function longestMessage({ rules }: ServedMethod): number {
  return (rules.relay ? 0 : rules.maxMessageBytes) || (rules.public ? longestPublicBody : mebibyte);
}

/** Returns the largest message in bytes that a client may send over WebSocket. */
export function longestFrame(served: ServedMethod): number {
  return served.rules.maxMessageBytes || longestMessage(served);
}

/** Returns the largest REST body of a method in bytes. */
export function longestBody({ rules }: ServedMethod): number {
  return rules.maxBodyBytes || (rules.public ? longestPublicBody : mebibyte);
}

/** Formats a size in MiB or KiB if it is a whole number of them, else in bytes. */
export function sizeText(bytes: number): string {
  if (bytes % mebibyte === 0) return `${bytes / mebibyte} MiB`;
  return bytes % kibibyte === 0 ? `${bytes / kibibyte} KiB` : `${bytes} bytes`;
}

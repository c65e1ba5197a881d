import type { ServedMethod } from "../src/kernel/registry.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** Largest body in bytes of a request without a key, to a public method or a page. */
export const longestPublicBody = 16 * kibibyte;

/**
 * Returns the largest message in bytes that a client may send over gRPC and Connect: the limit of the method, else that
 * of a REST body. The limit of a relaying method does not apply, since its messages are sent in parts.
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

/** Formats a number of bytes for a client. */
export function sizeText(bytes: number): string {
  if (bytes % mebibyte === 0) return `${bytes / mebibyte} MiB`;
  return bytes % kibibyte === 0 ? `${bytes / kibibyte} KiB` : `${bytes} bytes`;
}

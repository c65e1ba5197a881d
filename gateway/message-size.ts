import type { ServedMethod } from "../src/kernel/registry.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** The largest body in bytes of a request without a key, be it to a public method or to a page. */
export const longestPublicBody = 16 * kibibyte;

/**
 * The largest message in bytes that a client may send to a method over gRPC and Connect: what the method says, else as much
 * as a REST body. What is relayed travels in parts there.
 */
export function longestMessage({ rules }: ServedMethod): number {
  return (rules.relay ? 0 : rules.maxMessageBytes) || (rules.public ? longestPublicBody : mebibyte);
}

/** The largest message in bytes that a client may send to a method over WebSocket. */
export function longestFrame(served: ServedMethod): number {
  return served.rules.maxMessageBytes || longestMessage(served);
}

/** The largest REST body of a method in bytes. */
export function longestBody({ rules }: ServedMethod): number {
  return rules.maxBodyBytes || (rules.public ? longestPublicBody : mebibyte);
}

/** Writes a number of bytes for a client. */
export function sizeText(bytes: number): string {
  if (bytes % mebibyte === 0) return `${bytes / mebibyte} MiB`;
  return bytes % kibibyte === 0 ? `${bytes / kibibyte} KiB` : `${bytes} bytes`;
}

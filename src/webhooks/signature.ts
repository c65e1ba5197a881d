import { createHmac } from "node:crypto";

/** Beginning of every secret of an endpoint; 32 characters of base64 follow, which are its 24 bytes. */
export const secretMark = "whsec_";

/** What a signature covers: what is sent, and when. */
export interface Signed {
  /** Identifier of the event. */
  readonly id: string;
  /** The body, byte for byte as it is sent. */
  readonly body: string;
  /** When it is sent, in seconds since the Unix epoch. Receivers refuse what is older than 300 s. */
  readonly timestamp: number;
}

/**
 * The headers that prove who sends an event, twice: in the form of our interface, keyed by a secret as it is written, and
 * in that of Standard Webhooks, keyed by the bytes which it stands for. Each secret signs, the newest first.
 */
export function signatureHeaders(secrets: readonly string[], { id, body, timestamp }: Signed): Record<string, string> {
  const ours = secrets.map((secret) => `v1=${hmac(secret, `${timestamp}.${body}`, "hex")}`);
  const standard = secrets.map((secret) => `v1,${hmac(bytesOf(secret), `${id}.${timestamp}.${body}`, "base64")}`);
  return {
    "X-Service-Signature": [`t=${timestamp}`, ...ours].join(","),
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standard.join(" "),
  };
}

function bytesOf(secret: string): Buffer {
  return Buffer.from(secret.slice(secretMark.length), "base64");
}

function hmac(key: string | Buffer, text: string, encoding: "hex" | "base64"): string {
  return createHmac("sha256", key).update(text).digest(encoding);
}

import { createHmac } from "node:crypto";

/** Prefix of every endpoint secret; 24 bytes follow as 32 characters of base64. */
export const endpointSecretPrefix = "whsec_";

/** Content that a signature covers. */
export interface Signed {
  /** Identifier of the event. */
  readonly id: string;
  /** The exact body of the request. */
  readonly body: string;
  /** Seconds since the Unix epoch when the request is sent. Receivers should reject requests older than 300 s. */
  readonly timestamp: number;
}

/**
 * Creates the signature headers in two formats: our API's, keyed by the secret as text, and that of Standard Webhooks,
 * keyed by the decoded secret. Every secret signs, newest first.
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
  return Buffer.from(secret.slice(endpointSecretPrefix.length), "base64");
}

function hmac(key: string | Buffer, text: string, encoding: "hex" | "base64"): string {
  return createHmac("sha256", key).update(text).digest(encoding);
}

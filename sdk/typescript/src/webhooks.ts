import { decodeBase64 } from "./base64.ts";
import { PilothouseError } from "./errors.ts";
import type { ServiceEvent } from "./gen/schema.ts";

/** Thrown for a webhook delivery that is not genuine, or too old. */
export class WebhookVerificationError extends PilothouseError {
  override readonly name = "WebhookVerificationError";
}

/** Delivery to verify. */
export interface WebhookDelivery {
  /** Raw body of the request, as received. */
  readonly body: string | Uint8Array;
  /** Headers of the request, such as `request.headers` of Node or of a `Request`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Secret of the endpoint, `whsec_...`. */
  readonly secret: string;
  /** Largest difference between the clock of the service and this one. Default: 300. */
  readonly toleranceSeconds?: number;
}

const hmac = { name: "HMAC", hash: "SHA-256" };
const defaultTolerance = 300;
/** Maximum number of signatures to verify. The service sends at most two, during a rotation. */
const maxSignatures = 8;

/**
 * Verifies a webhook delivery by its Standard Webhooks headers, and returns its event. The same event can be delivered
 * more than once: store its `id`. Throws WebhookVerificationError.
 */
export async function verify({ body, headers, secret, toleranceSeconds }: WebhookDelivery): Promise<ServiceEvent> {
  const id = readHeader(headers, "webhook-id");
  const timestamp = readHeader(headers, "webhook-timestamp");
  const signatures = readHeader(headers, "webhook-signature").split(" ").slice(0, maxSignatures);
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  const age = Math.floor(Date.now() / 1000) - seconds;
  if (!(Math.abs(age) <= (toleranceSeconds ?? defaultTolerance)))
    throw new WebhookVerificationError(`expected a webhook-timestamp near this clock, got a difference of ${age} s`);
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  const key = await crypto.subtle.importKey("raw", decodeSecret(secret), hmac, false, ["verify"]);
  for (const signature of signatures) {
    const bytes = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
    // The comparison of Web Crypto takes constant time.
    if (bytes && (await crypto.subtle.verify(hmac, key, bytes, signed))) return JSON.parse(text);
  }
  throw new WebhookVerificationError("expected a signature with this secret, got none that matches the body");
}

function readHeader(headers: WebhookDelivery["headers"], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value === "string" && value !== "") return value;
  throw new WebhookVerificationError(`expected the header ${name}, got none`);
}

function decodeSecret(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = secret.startsWith("whsec_") ? decodeBase64(secret.slice("whsec_".length)) : undefined;
  if (bytes === undefined || bytes.length === 0)
    throw new TypeError("expected the secret of an endpoint, whsec_ and base64, got another text");
  return bytes;
}

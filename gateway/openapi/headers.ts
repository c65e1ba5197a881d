import type { Header, JsonSchema, Parameter, Reference } from "./model.ts";

export const responseHeaders = {
  "X-Request-Id": {
    description: "Identifier of the request: the client's own if it is valid, else a generated one.",
    schema: { type: "string" },
  },
  "X-RateLimit-Limit": {
    description: "Capacity of the shown rate-limit bucket.",
    schema: { type: "integer", minimum: 0 },
  },
  "X-RateLimit-Remaining": {
    description: "Whole tokens left in the shown bucket.",
    schema: { type: "integer", minimum: 0 },
  },
  "X-RateLimit-Reset": {
    description: "When the shown bucket is full again, in seconds since 1970.",
    schema: { type: "integer", minimum: 0 },
  },
  "X-RateLimit-Bucket": {
    description: "The shown bucket: the most specific one that the request drew from; on 429 the empty one.",
    schema: { type: "string" },
  },
  "Retry-After": {
    description: "Seconds to wait before the next attempt, if known.",
    schema: { type: "integer", minimum: 0 },
  },
  "Idempotency-Replayed": {
    description: "`true` when the answer is the stored one of an earlier request with the same Idempotency-Key.",
    schema: { type: "string", enum: ["true"] },
  },
} as const satisfies Record<string, Header>;

/** Header parameters of operations, by component name. */
export const headerParameters = {
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description: "Your identifier of the request. Returned unchanged if valid, else replaced.",
    schema: { type: "string", maxLength: 128, pattern: "^[A-Za-z0-9._~:-]+$" },
  },
  RequestTimeout: {
    name: "X-Request-Timeout-Ms",
    in: "header",
    description:
      "Milliseconds that you wait for the response. Afterwards, operations that serve only this request are cancelled.",
    schema: { type: "integer", minimum: 1, maximum: 600_000 },
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes the request safe to retry: within 24 h the same key with the same body returns the stored response, with " +
      "another body `conflict`.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  CommandKey: {
    name: "Idempotency-Key",
    in: "header",
    description: "Makes the command safe to retry: the session stores the responses of its last 100 keys.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  LastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description:
      "Starts after this event. Browsers send it automatically when they reconnect. The first frame of a stream has the `id` of the last event so far, if there is one.",
    schema: { type: "string", maxLength: 64 },
  },
  ByokLlmApiKey: {
    name: "X-BYOK-LLM-API-Key",
    in: "header",
    description: "An API key of the LLM provider, only for this turn. It is not stored.",
    schema: { type: "string" },
  },
  ViewerKey: {
    name: "X-Viewer-Key",
    in: "header",
    description: "`viewer_key` of the viewer's `hello`.",
    schema: { type: "string" },
  },
} as const satisfies Record<string, Parameter>;

const deliveryHeader = (
  name: string,
  description: string,
  schema: JsonSchema,
  example: string | number,
): Parameter => ({
  name,
  in: "header",
  description,
  required: true,
  schema,
  example,
});

export const deliveryHeaders: readonly Parameter[] = [
  deliveryHeader(
    "X-Service-Event-Id",
    "Identifier of the event: the same for every attempt and replay. Use it to detect duplicates.",
    { type: "string" },
    "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  ),
  deliveryHeader("X-Service-Event-Type", "Type of the event.", { type: "string" }, "session.completed"),
  deliveryHeader(
    "X-Service-Emitted-At",
    "When the event happened, in seconds since 1970. The signature covers its own time `t` instead.",
    { type: "integer" },
    1_764_000_000,
  ),
  deliveryHeader(
    "X-Service-Signature",
    "`t=<seconds since 1970>,v1=<hex>`: HMAC-SHA256 with the endpoint's whole secret over `<t>.<raw body>`. For 24 hours " +
      "after a rotation there are two `v1`; either may match. Refuse a `t` more than 300 seconds from now.",
    { type: "string" },
    "t=1764000003,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
  ),
  deliveryHeader(
    "webhook-id",
    "Identifier of the event, in the header of Standard Webhooks.",
    { type: "string" },
    "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  ),
  deliveryHeader("webhook-timestamp", "The `t` of the signature.", { type: "integer" }, 1_764_000_003),
  deliveryHeader(
    "webhook-signature",
    "Signatures of Standard Webhooks, separated by spaces: `v1,` and base64 of HMAC-SHA256 over " +
      "`<webhook-id>.<webhook-timestamp>.<raw body>`, keyed with the base64-decoded part of the secret after `whsec_`.",
    { type: "string" },
    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
  ),
];

/** Returns a reference to a header parameter. */
export function referToParameter(name: keyof typeof headerParameters): Reference {
  return { $ref: `#/components/parameters/${name}` };
}

/**
 * Returns a reference to the parameter of a header, by the header's name in a method's option `headers`. Throws if
 * `headerParameters` lacks the header.
 */
export function referToParameterNamed(header: string): Reference {
  const component = Object.entries<Parameter>(headerParameters).find(([, { name }]) => name === header)?.[0];
  if (component === undefined) throw new Error(`expected a description of the header ${header} in headerParameters`);
  return { $ref: `#/components/parameters/${component}` };
}

/** Returns a reference to a response header. */
export function referToHeader(name: keyof typeof responseHeaders): Reference {
  return { $ref: `#/components/headers/${name}` };
}

/** Headers of every response. */
export const commonHeaders: Readonly<Record<string, Reference>> = {
  "X-Request-Id": referToHeader("X-Request-Id"),
  "X-RateLimit-Limit": referToHeader("X-RateLimit-Limit"),
  "X-RateLimit-Remaining": referToHeader("X-RateLimit-Remaining"),
  "X-RateLimit-Reset": referToHeader("X-RateLimit-Reset"),
  "X-RateLimit-Bucket": referToHeader("X-RateLimit-Bucket"),
};

import type { Header, Parameter, Reference, Schema } from "./model.ts";

/** Headers of the answers. */
export const responseHeaders = {
  "X-Request-Id": {
    description: "Identifier of the request: the client's own where it sent a sane one.",
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
    description: "Seconds after which to try again, where that is known.",
    schema: { type: "integer", minimum: 0 },
  },
  "Idempotency-Replayed": {
    description: "`true` when the answer is the stored one of an earlier request with the same Idempotency-Key.",
    schema: { type: "string", enum: ["true"] },
  },
} as const satisfies Record<string, Header>;

/** Header parameters of the operations, by the name of their component. */
export const headerParameters = {
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description: "A name of your own for the request. Answered as given where it is a sane token, else replaced.",
    schema: { type: "string", maxLength: 128, pattern: "^[A-Za-z0-9._~:-]+$" },
  },
  RequestTimeout: {
    name: "X-Request-Timeout-Ms",
    in: "header",
    description: "Milliseconds that you wait for the answer. What runs on your behalf alone ends then.",
    schema: { type: "integer", minimum: 1, maximum: 600_000 },
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes the request safe to send again: within 24 h the same key with the same body gets the stored answer, with " +
      "another body `conflict`.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  CommandKey: {
    name: "Idempotency-Key",
    in: "header",
    description: "Makes the command safe to send again: the session remembers the answers of its last 100 keys.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  LastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "Starts after this event. Browsers send it by themselves when they reconnect.",
    schema: { type: "string", maxLength: 64 },
  },
  ByokLlmApiKey: {
    name: "X-BYOK-LLM-API-Key",
    in: "header",
    description: "An API key of the LLM provider, for this turn alone. It is not kept.",
    schema: { type: "string" },
  },
  ViewerKey: {
    name: "X-Viewer-Key",
    in: "header",
    description: "`viewer_key` of the viewer's `hello`.",
    schema: { type: "string" },
  },
} as const satisfies Record<string, Parameter>;

const deliveryHeader = (name: string, description: string, schema: Schema, example: string | number): Parameter => ({
  ...{ name, in: "header", description, required: true, schema, example },
});

/** The headers of what webhook endpoints are sent. */
export const deliveryHeaders: readonly Parameter[] = [
  deliveryHeader(
    "X-Service-Event-Id",
    "Identifier of the event: the same at every attempt and replay, so that what comes twice is known.",
    { type: "string" },
    "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  ),
  deliveryHeader("X-Service-Event-Type", "Type of the event.", { type: "string" }, "session.completed"),
  deliveryHeader(
    "X-Service-Emitted-At",
    "When the event happened, in seconds since 1970. It is not what is signed.",
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
    "The event's identifier, as Standard Webhooks has it.",
    { type: "string" },
    "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  ),
  deliveryHeader("webhook-timestamp", "The `t` of the signature.", { type: "integer" }, 1_764_000_003),
  deliveryHeader(
    "webhook-signature",
    "Signatures of Standard Webhooks, separated by spaces: `v1,` and base64 of HMAC-SHA256 over " +
      "`<webhook-id>.<webhook-timestamp>.<raw body>`, with the bytes that the secret's part behind `whsec_` stands for in base64.",
    { type: "string" },
    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
  ),
];

/** Refers to a header parameter. */
export function referToParameter(name: keyof typeof headerParameters): Reference {
  return { $ref: `#/components/parameters/${name}` };
}

/** Refers to the parameter of a header that a method has in its option `headers`. */
export function referToParameterNamed(header: string): Reference {
  const component = Object.entries<Parameter>(headerParameters).find(([, { name }]) => name === header)?.[0];
  if (component === undefined) throw new Error(`the header ${header} has no description`);
  return { $ref: `#/components/parameters/${component}` };
}

/** Refers to a response header. */
export function referToHeader(name: keyof typeof responseHeaders): Reference {
  return { $ref: `#/components/headers/${name}` };
}

/** The headers that every answer carries. */
export const commonHeaders: Readonly<Record<string, Reference>> = {
  "X-Request-Id": referToHeader("X-Request-Id"),
  "X-RateLimit-Limit": referToHeader("X-RateLimit-Limit"),
  "X-RateLimit-Remaining": referToHeader("X-RateLimit-Remaining"),
  "X-RateLimit-Reset": referToHeader("X-RateLimit-Reset"),
  "X-RateLimit-Bucket": referToHeader("X-RateLimit-Bucket"),
};

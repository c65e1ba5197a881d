import type { IncomingMessage, ServerResponse } from "node:http";
import { cors as connectCors } from "@connectrpc/connect";

const exposedHeaders = [
  "X-Request-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-RateLimit-Bucket",
  "Retry-After",
  "Idempotency-Replayed",
  ...connectCors.exposedHeaders,
].join(", ");

const allowedHeaders = [
  "Authorization",
  "Idempotency-Key",
  "Last-Event-ID",
  "X-Request-Id",
  "X-Request-Timeout-Ms",
  "X-BYOK-LLM-API-Key",
  "Traceparent",
  "Tracestate",
  ...connectCors.allowedHeaders,
].join(", ");

/** Which pages of other origins may use the service (Fetch standard, section 3.2). */
export interface Cors {
  /** Says whether a page may: one of CORS_ORIGINS, or of the service's own origin. */
  permits(request: IncomingMessage): boolean;
  /** Marks an answer for the page that asks, and says whether the request is a preflight, which needs no more than that. */
  mark(request: IncomingMessage, response: ServerResponse): boolean;
}

/** Makes the rule of CORS_ORIGINS. */
export function createCors(corsOrigins: readonly string[]): Cors {
  const origins = new Set(corsOrigins);
  return {
    permits({ headers: { origin, host } }) {
      const isOwn = origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
      return origin === undefined || isOwn || origins.has(origin);
    },
    mark({ headers, method }, response) {
      // A cache must not give one origin's answer to another, whichever of them asked first.
      if (origins.size > 0) response.setHeader("vary", "Origin");
      const { origin } = headers;
      if (origin === undefined || !origins.has(origin)) return false;
      response.setHeader("access-control-allow-origin", origin);
      response.setHeader("access-control-expose-headers", exposedHeaders);
      if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return false;
      response.setHeader("access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
      response.setHeader("access-control-allow-headers", allowedHeaders);
      response.setHeader("access-control-max-age", "7200");
      return true;
    },
  };
}

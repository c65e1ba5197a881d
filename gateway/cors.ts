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

/** Rules for requests from pages of other origins (Fetch standard, section 3.2). */
export interface Cors {
  /** Returns whether the request has no Origin, the service's own, or one of CORS_ORIGINS. */
  permits(request: IncomingMessage): boolean;
  /**
   * Sets the CORS headers for an allowed origin. Returns true for a preflight of an allowed origin, to which the caller
   * responds without a body.
   */
  mark(request: IncomingMessage, response: ServerResponse): boolean;
}

/** Creates the CORS rule from CORS_ORIGINS. */
export function createCors(corsOrigins: readonly string[]): Cors {
  const origins = new Set(corsOrigins);
  return {
    permits({ headers: { origin, host } }) {
      const isOwn = origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
      return origin === undefined || isOwn || origins.has(origin);
    },
    mark({ headers, method }, response) {
      // A shared cache must not return the response for one origin to another origin.
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

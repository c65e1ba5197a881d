import type { FastifyRequest } from "fastify";
import { failFields } from "../../src/platform/errors.ts";

/**
 * Returns the client's timeout in milliseconds from `X-Request-Timeout-Ms`, if any. Throws `bad-request` unless the
 * value is a whole number from 1 to 600,000.
 */
export function timeoutOf(request: FastifyRequest): number | undefined {
  const text = request.headers["x-request-timeout-ms"];
  if (text === undefined) return undefined;
  const timeout = Number(text);
  if (!/^\d+$/.test(String(text)) || timeout < 1 || timeout > 600_000)
    throw failFields("bad-request", { "X-Request-Timeout-Ms": "must be a whole number from 1 to 600000" });
  return timeout;
}

import { breaksMidway, fails, resets, type Step } from "./misbehaving-server.ts";

/** Faults after which each SDK repeats a request, by description. */
export const passingFaults: readonly [string, Step][] = [
  ["429 with Retry-After", fails(429, "rate-limited", { "retry-after": "0" })],
  ["503 with Retry-After as a date", fails(503, "capacity-unavailable", { "retry-after": new Date(0).toUTCString() })],
  ["an internal error", fails(500, "internal")],
  ["a bad gateway of a proxy", (response) => response.writeHead(502).end("<html>")],
  ["a reset connection", resets],
  ["a response that breaks midway", breaksMidway],
];

/** Faults after which each SDK repeats a fetch, because nothing was fetched. */
export const refusals: readonly [string, Step][] = [
  ["rate-limited", fails(429, "rate-limited", { "retry-after": "0" })],
  ["capacity-unavailable", fails(503, "capacity-unavailable", { "retry-after": "0" })],
];

/** Faults after which no SDK repeats a fetch, because the page may have been fetched. */
export const doubtfulFetches: readonly [string, Step][] = [
  ["an internal error", fails(500, "internal", { "retry-after": "0" })],
  ["a reset connection", resets],
  ["a response that breaks midway", breaksMidway],
];

/** Faults that each SDK reports at once, by slug. */
export const finalFaults: readonly [string, Step][] = [
  ["concurrency-limit", fails(429, "concurrency-limit")],
  ["driver-error", fails(502, "driver-error")],
  ["session-timeout", fails(504, "session-timeout")],
  ["rate-limited", fails(429, "rate-limited", { "retry-after": "3600" })],
];

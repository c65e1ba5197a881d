import { PilothouseConnectionError, PilothouseResponseError } from "./errors.ts";

/**
 * Why a repetition of a request is safe.
 * - `safe`: the request changes nothing, or has the same effect twice.
 * - `key`: the request has an idempotency key, and the service answers a repetition with the first response.
 * - `refused`: the service has refused the request before it did anything. Other failures are not repeated.
 * - `never`: a repetition could have a second effect.
 */
export type Repetition = "safe" | "key" | "refused" | "never";

/** Paths of POST requests that only read. */
const reading = /^\/v1\/sessions\/[^/]+\/(?:wait|capture|observe|read)$/;

/** Paths of POST requests that accept an Idempotency-Key. */
const keyed = [
  /^\/v1\/sessions$/,
  /^\/v1\/sessions\/[^/]+\/(?:navigate|interact|cdp-url|view-links)$/,
  /^\/v1\/agent-sessions$/,
  /^\/v1\/agent-sessions\/[^/]+\/(?:message|mode|takeover|handback)$/,
  /^\/v1\/agent-sessions\/[^/]+\/turns\/[^/]+\/cancel$/,
];

/** Slugs of temporary errors. All others are returned to the caller at once. */
const temporary: ReadonlySet<string> = new Set(["rate-limited", "internal", "capacity-unavailable"]);

/** Slugs of temporary errors with which the service refuses a request before it does anything. */
const refusals: ReadonlySet<string> = new Set(["rate-limited", "capacity-unavailable"]);

const [firstWaitMs, longestWaitMs] = [500, 8_000];
/** Longest `Retry-After` that a retry waits for. If the service asks for more, the error is thrown. */
const longestRetryAfterMs = 60_000;

/** Returns how a request may be repeated. `hasKey` states whether the caller passed an idempotency key. */
export function repetitionOf(method: string, path: string, hasKey: boolean): Repetition {
  if (method === "GET" || method === "PUT" || method === "DELETE") return "safe";
  if (method !== "POST") return "never";
  if (reading.test(path)) return "safe";
  if (path === "/v1/fetch") return "refused";
  return hasKey || keyed.some((pattern) => pattern.test(path)) ? "key" : "never";
}

/** Returns the milliseconds to wait before a repetition, or undefined if the error is final. */
export function retryDelay(error: unknown, attempt: number, repetition: Repetition = "safe"): number | undefined {
  if (repetition === "never") return undefined;
  if (repetition === "refused" && !(error instanceof PilothouseResponseError && refusals.has(error.slug)))
    return undefined;
  const backoff = Math.min(firstWaitMs * 2 ** attempt, longestWaitMs);
  const jittered = backoff * (0.75 + Math.random() / 4);
  if (error instanceof PilothouseConnectionError) return jittered;
  if (!(error instanceof PilothouseResponseError) || !isTemporary(error)) return undefined;
  if (error.retryAfter === undefined) return jittered;
  const requestedMs = error.retryAfter * 1000;
  return requestedMs <= longestRetryAfterMs ? requestedMs : undefined;
}

/** A response without a problem document is temporary if its status is that of an overloaded proxy. */
function isTemporary({ slug, status, problem }: PilothouseResponseError): boolean {
  if (!temporary.has(slug)) return false;
  return problem.type !== "about:blank" || status === 429 || status >= 500;
}

/** Resolves after some milliseconds. Rejects with the signal's reason. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

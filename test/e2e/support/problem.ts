import { expect } from "vitest";
import { watchForParsers } from "../../support/leaks.ts";
import type { Service } from "../../support/service.ts";

export interface Request {
  readonly method?: string;
  readonly path: string;
  /** Strings, bytes and streams are sent unchanged, other values as JSON. */
  readonly body?: unknown;
  /** Lower-case names. null omits a default header. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface ExpectedProblem {
  readonly status: number;
  readonly slug: string;
  /** Prefix of `detail`, which starts with the invalid field. */
  readonly detail?: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** Milliseconds that suffice for 100 MiB on a busy machine. */
const longestMs = 100_000;

let addresses = 0;

/** Sends a request from a unique client address, so that tests do not share buckets. */
export async function send({ url, key }: Pick<Service, "url" | "key">, request: Request): Promise<Received> {
  const { method = request.body === undefined ? "GET" : "POST", path, body } = request;
  addresses += 1;
  const headers: Record<string, string | null> = {
    authorization: `Bearer ${key}`,
    ...(body !== undefined && { "content-type": "application/json" }),
    "x-forwarded-for": `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`,
    ...request.headers,
  };
  const sent = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === null ? [] : [[name, value]],
  );
  const raw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: sent,
    signal: AbortSignal.timeout(longestMs),
    ...(body !== undefined && { body: raw ? (body as BodyInit) : JSON.stringify(body), duplex: "half" }),
  });
  const received = { status: response.status, headers: response.headers, text: await response.text() };
  expectCommonHeaders(received);
  if (!response.ok) watchForParsers(received.text);
  return received;
}

/** Expects a request ID and rate limit headers, which every response has. */
function expectCommonHeaders({ headers }: Received): void {
  expect(headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._~:-]{1,128}$/);
  expect(headers.get("x-ratelimit-bucket")).toMatch(/^[a-z_:]+$/);
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN),
  );
  expect(limit).toBeGreaterThan(0);
  expect(remaining).toBeGreaterThanOrEqual(0);
  expect(remaining).toBeLessThanOrEqual(limit ?? 0);
  expect(Math.abs((reset ?? 0) - Date.now() / 1000)).toBeLessThan(3600);
}

/** Expects a complete problem document. */
export function expectProblem({ status, headers, text }: Received, expected: ExpectedProblem): void {
  const problem = JSON.parse(text);
  expect(problem).toMatchObject({ status: expected.status, ...expected.extensions });
  expect(status).toBe(expected.status);
  expect(problem.type).toMatch(new RegExp(`/errors/${expected.slug}$`));
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(problem.title).toBeTypeOf("string");
  expect(problem.instance).toBe(headers.get("x-request-id"));
  if (expected.detail !== undefined) expect(problem.detail.slice(0, expected.detail.length)).toBe(expected.detail);
}

import { type ClientHttp2Session, connect } from "node:http2";
import { fastify } from "fastify";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { revalidated } from "../../gateway/pages/pages.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { html } from "../../src/platform/html.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

let last = 0;
let address: string;
beforeEach(() => {
  last += 1;
  address = `203.0.113.${last}`;
});

const get = (path: string, from = address): Promise<Response> =>
  fetch(`${gateway.url}${path}`, { headers: { "x-forwarded-for": from } });

test("documents use a bucket per address with 300 tokens, refilled by 60 per second", async () => {
  const paths = ["/docs", "/v1/openapi.json", "/errors/not-found", "/status", "/live", "/docs/webhooks.md"];
  const before = (await get("/v1/archetypes")).headers.get("x-ratelimit-remaining");
  const since = performance.now();
  const statuses: string[] = [];
  let refused: Response | undefined;
  for (let asked = 0; !refused; asked += 30) {
    const some = Array.from({ length: 30 }, (_, index) => get(paths[(asked + index) % paths.length] ?? ""));
    for (const response of await Promise.all(some)) {
      if (response.status === 429) refused = response;
      else statuses.push(`${response.status} ${response.headers.get("x-ratelimit-bucket")}`);
    }
  }
  const refilled = ((performance.now() - since) / 1_000) * 60;
  expect(new Set(statuses)).toEqual(new Set(["200 global"]));
  expect(statuses.length).toBeGreaterThanOrEqual(300);
  expect(statuses.length).toBeLessThanOrEqual(301 + refilled);
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    "retry-after": "1",
    "x-ratelimit-bucket": "global",
    "x-ratelimit-limit": "60",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": expect.stringMatching(/^\d+$/),
  });
  const reset = Number(refused.headers.get("x-ratelimit-reset"));
  expect(Math.abs(reset - gateway.now() / 1_000 - 1)).toBeLessThan(3);
  expect((await refused.json()).detail).toBe('rate limit "documents" of your address exceeded: retry after 1 s');
  expect((await get("/docs", "203.0.113.200")).status).toBe(200);
  gateway.pass(1_000);
  // The token of the first request has been refilled by now.
  expect((await get("/v1/archetypes")).headers.get("x-ratelimit-remaining")).toBe(before);
  const again = await Promise.all(Array.from({ length: 60 }, async () => (await get("/errors/not-found")).status));
  expect(new Set(again)).toEqual(new Set([200]));
});

test("a client address may have at most 256 unread documents", async () => {
  const sessions: ClientHttp2Session[] = [];
  const closed: number[] = [];
  const ask = (count: number): void => {
    const session = connect(gateway.url, { settings: { initialWindowSize: 0 } }).on("error", () => undefined);
    sessions.push(session);
    for (let asked = 0; asked < count; asked += 1) {
      const stream = session.request({ ":path": "/errors/not-found", "x-forwarded-for": address });
      stream.on("error", () => undefined).on("close", () => closed.push(stream.rstCode));
    }
  };
  try {
    ask(200);
    ask(86);
    expect(await waitUntil(() => closed.length >= 30, { timeout: 20_000, every: 10 })).toBe(true);
    expect(closed, JSON.stringify(closed)).toHaveLength(30);
    // Closed connections release their documents.
    for (const session of sessions) session.destroy();
    const isBack = async (): Promise<boolean> =>
      get("/docs").then(
        ({ ok }) => ok,
        () => false,
      );
    expect(await waitUntil(isBack, { timeout: 20_000, every: 50 })).toBe(true);
  } finally {
    for (const session of sessions) session.destroy();
  }
});

test("an unknown path returns a page to browsers and a problem to others, and there is an icon", async () => {
  const headers = { accept: "text/html,application/xhtml+xml", "x-forwarded-for": address };
  const open = async (path: string) => {
    const response = await fetch(`${gateway.url}${path}`, { headers });
    return [response.status, response.headers.get("content-type"), await response.text()];
  };
  const nowhere = [404, "text/html; charset=utf-8", expect.stringMatching(/<h1>Nothing here<\/h1>.*href="\/docs"/s)];
  expect(await open("/nowhere")).toEqual(nowhere);
  expect(await open("/try/yesterdays")).toEqual([...nowhere.slice(0, 2), expect.stringContaining("it printed last")]);
  expect(await open("/v1/<b>")).toEqual(nowhere);
  const plain = await get("/nowhere");
  expect([plain.status, plain.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  expect((await fetch(`${gateway.url}/nowhere`, { method: "HEAD", headers })).status).toBe(404);
  expect(await open("/favicon.ico")).toEqual([200, "image/svg+xml", expect.stringMatching(/^<svg /)]);
});

test("a problem is a page without script for browsers and JSON for programs", async () => {
  const ask = async (headers: Record<string, string>, path = "/v1/sessions?page_size=<b>") => {
    const response = await fetch(`${gateway.url}${path}`, { headers: { "x-forwarded-for": address, ...headers } });
    return { response, text: await response.text() };
  };
  const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const shown = await ask(browser);
  const { detail, title, type } = JSON.parse((await ask({})).text);
  const requestId = shown.response.headers.get("x-request-id");
  expect([shown.response.status, shown.response.headers.get("content-type")]).toEqual([
    401,
    "text/html; charset=utf-8",
  ]);
  expect(shown.response.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-\S+'; script-src 'none'; .*frame-ancestors 'none'$/,
  );
  expect(shown.response.headers.get("www-authenticate")).toBe("Bearer");
  for (const part of [`<h1>${title}</h1>`, html`${detail}`.markup, requestId, `href="${type}"`, 'href="/docs"'])
    expect(shown.text).toContain(part);
  expect(shown.text).not.toContain("<script");
  const programs = [
    { accept: "application/json, text/html" },
    { ...browser, authorization: "Bearer x" },
    { accept: "*/*" },
  ];
  for (const headers of programs)
    expect((await ask(headers)).response.headers.get("content-type")).toBe("application/problem+json");
  const escaped = await ask(browser, "/v1/%zz<b>");
  expect([escaped.response.status, escaped.response.headers.get("content-type")]).toEqual([
    400,
    "text/html; charset=utf-8",
  ]);
  expect(escaped.text).not.toContain("<b>");
});

test("a document is built again after a failure", async () => {
  const texts = [Promise.reject(new Error("the thread ended")), "built"];
  const server = fastify().get(
    "/",
    revalidated(async () => texts.shift() ?? "", {}),
  );
  expect((await server.inject("/")).statusCode).toBe(500);
  expect((await server.inject("/")).body).toBe("built");
  await server.close();
});

import { request } from "node:http";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { Counter } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTools } from "../../gateway/mcp/tool-table.ts";
import { createAccountExtraction } from "../../src/agents/turns/account-extraction.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { legacyMessage, modernMessage, postMcp } from "./mcp-post.ts";

let gateway: TestGateway;
let key: string;
beforeAll(async () => {
  gateway = await startTestGateway({ PUBLIC_URL: "https://browsers.example", CORS_ORIGINS: "https://app.example" });
  await gateway.running.worker();
  key = await gateway.addAccount();
}, 120_000);
afterAll(() => gateway?.[Symbol.asyncDispose](), 60_000);

const list = modernMessage("tools/list");
const call = (name: string, args: object = {}) => modernMessage("tools/call", { name, arguments: args });
const slugOf = ({ body }: { readonly body: { readonly type?: string } }) => body.type?.split("/").at(-1);
// biome-ignore lint/suspicious/noExplicitAny: tests look into errors of every shape.
const errorOf = ({ body }: { readonly body: any }) => JSON.parse(body.result.content[0].text);

/** Posts the list message with headers that `fetch` does not permit. */
function postFrom(headers: Record<string, string>): Promise<number | undefined> {
  const { hostname, port } = new URL(gateway.url);
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const sent = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${key}`,
  };
  const asked = request({
    hostname,
    port,
    method: "POST",
    path: "/mcp",
    headers: { ...sent, ...list.headers, ...headers },
  });
  asked.on("response", (response) => resolve(response.resume().statusCode)).on("error", reject);
  asked.end(JSON.stringify(list.body));
  return promise;
}

describe.each([
  ["2026-07-28", modernMessage],
  ["2025-11-25", legacyMessage],
])("revision %s", (_, message) => {
  test("lists the tools in a fixed order and in at most 4,000 tokens", async () => {
    const { status, body } = await postMcp(gateway.url, key, message("tools/list"));
    expect(status).toBe(200);
    const { tools } = body.result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(
      createTools(gateway.running.app.clock, createAccountExtraction(gateway.running.app)).map(({ name }) => name),
    );
    expect(countTokens(JSON.stringify(tools))).toBeLessThan(4_000);
  });

  test("a call returns a structured result, and an unknown tool or argument an error that tells what to do", async () => {
    const listed = await postMcp(gateway.url, key, message("tools/call", { name: "list_sessions", arguments: {} }));
    expect(listed.body.result).toMatchObject({ structuredContent: { sessions: [] } });
    const wrong = await postMcp(
      gateway.url,
      key,
      message("tools/call", { name: "navigate", arguments: { adress: "a", urll: "b" } }),
    );
    expect(wrong.body.result.isError).toBe(true);
    expect(errorOf(wrong)).toMatchObject({ error: "validation-failed", errors: expect.any(Array) });
    expect(JSON.stringify(errorOf(wrong))).toContain("did you mean");
    const unknown = await postMcp(gateway.url, key, message("tools/call", { name: "explode" }));
    expect(errorOf(unknown)).toMatchObject({
      error: "validation-failed",
      detail: expect.stringContaining("start_session"),
    });
  });
});

test("the MCP server is loaded again after a failure", async () => {
  await using other = await startTestGateway();
  const { metrics } = other.running.app;
  const name = "pilothouse_mcp_calls_total";
  // Loading fails while a metric of this name exists.
  new Counter({ name, help: "another", registers: [metrics] });
  const otherKey = await other.addAccount();
  expect(await postMcp(other.url, otherKey, list)).toMatchObject({ status: 500 });
  metrics.removeSingleMetric(name);
  expect(await postMcp(other.url, otherKey, list)).toMatchObject({ status: 200 });
}, 60_000);

test("revision 2026-07-28 has cache hints, a discovery and result types", async () => {
  const listed = await postMcp(gateway.url, key, list);
  expect(listed.body.result).toMatchObject({ resultType: "complete", ttlMs: 300_000, cacheScope: "public" });
  const found = await postMcp(gateway.url, key, modernMessage("server/discover"));
  expect(found.body.result).toMatchObject({ supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
});

test.each([
  [
    "a header that differs from the body",
    { ...list, headers: { ...list.headers, "mcp-method": "ping" } },
    400,
    -32_020,
  ],
  ["a missing method header", { ...list, headers: { "mcp-protocol-version": "2026-07-28" } }, 400, -32_020],
  ["an unknown revision", modernMessage("tools/list", {}, "2031-01-01"), 400, -32_022],
  ["an unknown method", modernMessage("tools/paint"), 404, -32_601],
  ["a subscription", modernMessage("subscriptions/listen", { notifications: {} }), 404, -32_601],
])("refuses %s", async (_, message, status, code) => {
  const refused = await postMcp(gateway.url, key, message);
  expect([refused.status, refused.body.error.code]).toEqual([status, code]);
});

test("a request without a valid API key returns 401 with WWW-Authenticate", async () => {
  const login = await gateway.running.app.ids.next("key");
  for (const bad of [undefined, "phk_nonsense", login]) {
    const refused = await postMcp(gateway.url, bad, list);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  }
});

test.each(["GET", "DELETE", "PUT"])("%s is refused with 405", async (method) => {
  const refused = await fetch(`${gateway.url}/mcp`, { method, headers: { authorization: `Bearer ${key}` } });
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "POST"]);
});

test("serves only the hosts of PUBLIC_URL and of loopback, and only known origins", async () => {
  expect(await postFrom({})).toBe(200);
  expect(await postFrom({ host: "localhost:1" })).toBe(200);
  expect(await postFrom({ host: "browsers.example" })).toBe(200);
  expect(await postFrom({ host: "evil.example" })).toBe(400);
  expect(await postFrom({ origin: "https://evil.example" })).toBe(403);
  expect(await postFrom({ origin: "null" })).toBe(403);
  expect(await postFrom({ origin: "https://browsers.example" })).toBe(200);
  expect(await postFrom({ origin: "https://app.example" })).toBe(200);
  expect(await postFrom({ origin: "http://localhost:6274" })).toBe(200);
});

test("refuses bodies that are too large, malformed, batched or of another type", async () => {
  const large = { ...list, body: { ...list.body, padding: "x".repeat(300_000) } };
  expect(slugOf(await postMcp(gateway.url, key, large))).toBe("validation-failed");
  expect(slugOf(await postMcp(gateway.url, key, { body: "{" }))).toBe("validation-failed");
  expect(slugOf(await postMcp(gateway.url, key, { body: [list.body] }))).toBe("validation-failed");
  expect(slugOf(await postMcp(gateway.url, key, { body: `{"a":[${"[],".repeat(30_000)}1]}` }))).toBe(
    "validation-failed",
  );
  const form = await postMcp(gateway.url, key, list, { headers: { "content-type": "text/plain" } });
  expect(form.status).toBe(400);
});

test("refuses arguments that cannot be stored or are nested too deeply", async () => {
  const nested = `${"[".repeat(15_000)}${"]".repeat(15_000)}`;
  for (const [args, field] of [
    ['{"locale":"a\\u0000"}', "locale"],
    ['{"locale":"\\ud800"}', "locale"],
    [`{"locale":${nested}}`, "locale"],
    ['{"locale":7}', "locale"],
    ['{"idle_timeout_seconds":3601}', "idle_timeout_seconds"],
  ]) {
    const { body, headers } = call("start_session");
    const text = JSON.stringify(body).replace('"arguments":{}', `"arguments":${args}`);
    const refused = await postMcp(gateway.url, key, { body: text, headers });
    expect(errorOf(refused), args?.slice(0, 40)).toMatchObject({
      error: "validation-failed",
      detail: expect.stringContaining(`${field}: `),
    });
  }
});

test("a narrow key may call only what its scopes allow", async () => {
  const narrow = await gateway.addAccount({ scopes: ["sessions:read"] });
  expect((await postMcp(gateway.url, narrow, call("list_sessions"))).body.result.isError).toBeUndefined();
  const refused = await postMcp(gateway.url, narrow, call("start_session"));
  expect(errorOf(refused)).toMatchObject({ error: "forbidden", detail: expect.stringContaining("sessions:write") });
  const extraction = call("extract", { session_id: "ses_none", schema: { type: "object" } });
  expect(errorOf(await postMcp(gateway.url, narrow, extraction))).toMatchObject({
    error: "forbidden",
    detail: expect.stringContaining("agent_sessions:write"),
  });
  expect(errorOf(refused).request_id).toBe(refused.headers.get("x-request-id"));
});

test("a session of another account does not exist, and the error lists the sessions that can be used", async () => {
  const own = await postMcp(gateway.url, key, call("start_session"));
  const { session_id: id } = own.body.result.structuredContent;
  expect(id).toMatch(/^ses_/);
  const { body } = await gateway.as(key)(`/v1/sessions/${id}`);
  expect([body.labels, body.idle_timeout_seconds]).toEqual([{ made_by: "mcp" }, 300]);
  const stranger = await gateway.addAccount();
  const errors = [];
  for (const asked of [id, "ses_01jd2z5r1v7k9m3q8t4w6x0y2b"]) {
    const refused = errorOf(await postMcp(gateway.url, stranger, call("observe", { session_id: asked })));
    const { request_id: _, ...rest } = refused;
    errors.push(rest);
  }
  expect(errors[0]).toEqual(errors[1]);
  expect(errors[0]).toMatchObject({ error: "not-found", sessions: [] });
  const mine = errorOf(await postMcp(gateway.url, key, call("observe", { session_id: "ses_none" })));
  expect(mine.sessions).toMatchObject([{ session_id: id, status: "live", made_by: "mcp" }]);
  const ended = await postMcp(gateway.url, key, call("end_session", { session_id: id }));
  expect(ended.body.result.structuredContent).toEqual({ status: "ended" });
});

test("messages draw from the bucket of the account, also those that reach no method", async () => {
  const free = await gateway.addAccount({ tier: "free" });
  const messages = [list, call("nothing"), call("navigate"), { ...list, headers: {} }, call("list_sessions")];
  for (const message of messages) {
    const { headers } = await postMcp(gateway.url, free, list);
    const before = Number(headers.get("x-ratelimit-remaining"));
    await postMcp(gateway.url, free, message);
    const after = Number((await postMcp(gateway.url, free, list)).headers.get("x-ratelimit-remaining"));
    // Tokens are refilled meanwhile, so one that was drawn shows only against the refill.
    expect(before - after, JSON.stringify(message.body)).toBeGreaterThanOrEqual(1);
  }
});

test("counts calls by tool and outcome", async () => {
  await postMcp(gateway.url, key, call("observe", { session_id: "ses_none" }));
  const metrics = await gateway.running.app.metrics.metrics();
  expect(metrics).toMatch(/pilothouse_mcp_calls_total\{tool="observe",outcome="not-found"\} \d/);
  expect(metrics).toMatch(/pilothouse_mcp_calls_total\{tool="unknown",outcome="validation-failed"\} \d/);
  expect(metrics).toMatch(/pilothouse_mcp_calls_total\{tool="list_sessions",outcome="done"\} \d/);
});

import { connect as connectHttp2 } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { SessionService } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLog } from "../../src/platform/log.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { createTransportCall, transportNames } from "../support/transport-calls.ts";

const lines: string[] = [];
const log = createLog("error", { write: (line) => lines.push(line) });

let gateway: TestGateway;
let authorization: string;
beforeAll(async () => {
  gateway = await startTestGateway({ ACCESS_LOG: "on" }, { log });
  authorization = `Bearer ${gateway.running.app.developerKey}`;
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Sends requests, and returns as many lines of the log. None of the lines may contain the secret. */
async function linesOf(count: number, send: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  lines.length = 0;
  await send();
  await expect.poll(() => lines.length).toBe(count);
  const text = lines.join("");
  expect(text).not.toContain(secret);
  expect(text).not.toContain(gateway.running.app.developerKey);
  return lines.map((line) => JSON.parse(line));
}

const secret = "phk_secretoftheclient";
const ours = { msg: "request", ms: expect.any(Number), request_id: expect.stringMatching(/^req_/) };
const account_id = expect.stringMatching(/^acc_/);

test("logs a request with the pattern of its path, and neither path, query nor key", async () => {
  const answered: string[] = [];
  const get = async (path: string) => {
    const response = await fetch(`${gateway.url}${path}`, { headers: { authorization } });
    answered.push(await response.text());
  };
  const sent = await linesOf(3, async () => {
    await get(`/v1/sessions?page_size=1&label=${secret}`);
    await get(`/v1/sessions/${secret}`);
    await get(`/nowhere/${secret}`);
  });
  const bytes = answered.map((text) => Buffer.byteLength(text));
  expect(sent).toEqual([
    expect.objectContaining({ ...ours, account_id, route: "/v1/sessions", method: "GET", bytes: bytes[0] }),
    expect.objectContaining({ ...ours, account_id, route: "/v1/sessions/:id", status: 404, bytes: bytes[1] }),
    expect.objectContaining({ ...ours, method: "GET", status: 404, bytes: bytes[2] }),
  ]);
  expect(sent[1]).toMatchObject({ problem: "not-found" });
  expect(sent[2]).not.toHaveProperty("route");
});

test.each(transportNames)("logs a call over %s with its account", async (transport) => {
  const call = createTransportCall(gateway);
  const send = () => call(transport, SessionService.method.list, {}, { authorization });
  const [line] = await linesOf(1, send);
  const route = transport === "REST" ? "/v1/sessions" : "/pilothouse.v1.SessionService/List";
  expect(line).toMatchObject({ ...ours, account_id, route, status: 200 });
});

test.each([
  ["/connect", "invalid-key"],
  ["/v1/sessions/ses_x/cdp", "unauthorized"],
])("logs a refused WebSocket of %s without its token", async (path, problem) => {
  const send = () => {
    const client = new WebSocket(`${gateway.url.replace("http", "ws")}${path}?token=${secret}`);
    return new Promise((resolve) => client.on("error", resolve));
  };
  const [line] = await linesOf(1, send);
  const route = path.replace("ses_x", ":session_id");
  expect(line).toMatchObject({ ...ours, route, method: "GET", status: 401, problem });
});

test("logs an accepted WebSocket when it has closed", async () => {
  const send = async () => {
    const headers = { authorization };
    const client = new WebSocket(`${gateway.url.replace("http", "ws")}/v1/events/stream`, { headers });
    await new Promise((resolve) => client.once("open", resolve));
    expect(lines).toEqual([]);
    client.close();
  };
  const [line] = await linesOf(1, send);
  expect(line).toMatchObject({ ...ours, account_id, route: "/v1/events/stream", status: 101 });
});

test("does not log a method name that a client of HTTP/2 invents", async () => {
  const send = async () => {
    const session = connectHttp2(gateway.url);
    const stream = session.request({ ":method": secret, ":path": "/v1/sessions" });
    stream.resume();
    await new Promise((resolve) => stream.on("close", resolve));
    session.close();
  };
  const [line] = await linesOf(1, send);
  expect(line).toMatchObject({ ...ours, method: "other" });
});

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import {
  AccountChange,
  type AccountNotice,
  AccountResource,
  AccountService,
} from "../../src/gen/pilothouse/v1/account_pb.ts";
import { storedNames } from "../../src/platform/rest-json/field-names.ts";
import type { Rest } from "../support/rest.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { type Endpoints, register, startEndpoints } from "../webhooks/scene.ts";

let gateway: TestGateway;
let receiver: Endpoints;
/** Key and client of a new account for each test. */
let key: string;
let rest: Rest;

beforeAll(async () => {
  [gateway, receiver] = await Promise.all([startTestGateway({ WEBHOOK_ALLOW: "127.0.0.1" }), startEndpoints()]);
  await gateway.running.worker({ slots: 20 });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  key = await gateway.addAccount();
  rest = gateway.as(key);
});

const changes = storedNames(AccountChange);
const resources = storedNames(AccountResource);

const write = ({ change, resource = AccountResource.UNSPECIFIED, id }: AccountNotice): string =>
  [resources.toStored(resource), changes.toStored(change), id].filter(Boolean).join(" ");

/** Follows the account of a key. Awaits the first notice. Returns the text of each later one. */
async function follow(bearer = key): Promise<string[]> {
  const client = createClient(AccountService, createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" }));
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const notices: string[] = [];
  const headers = { authorization: `Bearer ${bearer}` };
  const run = async (): Promise<void> => {
    for await (const notice of client.watch({}, { headers, signal: over.signal })) notices.push(write(notice));
  };
  run().catch((error: unknown) => over.signal.aborted || notices.push(String(error)));
  await expect.poll(() => notices, { timeout: 10_000 }).toEqual(["resync"]);
  notices.length = 0;
  return notices;
}

const eventually = (notices: readonly string[]) => expect.poll(() => [...notices], { timeout: 10_000 });
const end = (path: string) => rest(path, undefined, { method: "DELETE" });

test("reports the life of a session and the usage of the account", async () => {
  const notices = await follow();
  const { id } = (await rest("/v1/sessions", {})).body;
  await eventually(notices).toEqual(expect.arrayContaining([`session created ${id}`]));
  await eventually(notices).toEqual(expect.arrayContaining([`session changed ${id}`]));
  await end(`/v1/sessions/${id}`);
  await eventually(notices).toEqual(expect.arrayContaining([`session gone ${id}`]));
  expect(notices.some((notice) => notice.startsWith("usage changed acc_"))).toBe(true);
});

test("reports the end of an agent session with that of its browser session", async () => {
  const { id, session_id: session } = (await rest("/v1/agent-sessions", {})).body;
  const notices = await follow();
  await end(`/v1/sessions/${session}`);
  await eventually(notices).toEqual(expect.arrayContaining([`session gone ${session}`, `agent_session gone ${id}`]));
});

test("reports keys, profiles, webhooks and their deliveries", async () => {
  const notices = await follow();
  const { id: keyId } = (await rest("/v1/api-keys", { name: "CI" })).body;
  const { id: profile } = (await rest("/v1/profiles", { name: "Shop" })).body;
  const webhook = await register(rest, receiver.url("/followed"), { events: ["api_key.revoked"] });
  await end(`/v1/api-keys/${keyId}`);
  await eventually(notices).toEqual(expect.arrayContaining([`delivery changed ${webhook}`, `api_key gone ${keyId}`]));
  expect(notices).toEqual(
    expect.arrayContaining([`api_key created ${keyId}`, `profile created ${profile}`, `webhook created ${webhook}`]),
  );
});

test("reports only resources that the key may read, of its own account", async () => {
  const narrow = await gateway.addAccount({
    scopes: ["account:read", "profiles:read", "profiles:write", "sessions:write"],
  });
  const notices = await follow(narrow);
  const other = await follow();
  rest = gateway.as(narrow);
  const { id: session } = (await rest("/v1/sessions", {})).body;
  await end(`/v1/sessions/${session}`);
  const { id } = (await rest("/v1/profiles", { name: "Shop" })).body;
  await eventually(notices).toEqual(expect.arrayContaining([`profile created ${id}`]));
  expect(notices.filter((notice) => notice.startsWith("session"))).toEqual([]);
  expect(other).toEqual([]);
});

test("asks to read everything again after the gateway was cut off from the bus", async () => {
  const notices = await follow();
  gateway.running.app.bus.publish("resumed", "");
  await eventually(notices).toEqual(["resync"]);
});

test("streams over Server-Sent Events, with the scope account:read", async () => {
  const stream = (bearer: string, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/account/watch`, {
      headers: { authorization: `Bearer ${bearer}` },
      ...(signal && { signal }),
    });
  expect((await stream(await gateway.addAccount({ scopes: ["sessions:read"] }))).status).toBe(403);
  const over = new AbortController();
  const reader = (await stream(key, over.signal)).body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("data: ")) text += (await reader?.read())?.value ?? "";
  expect(text).toContain('data: {"change":"resync"}');
  over.abort();
});

test("streams over a WebSocket, which takes no messages", async () => {
  const open = (bearer: string) =>
    new WebSocket(`${gateway.url.replace("http", "ws")}/v1/account/watch`, ["pilothouse.v1", `bearer.${bearer}`]);
  const socket = open(key);
  const messages: string[] = [];
  socket.on("message", (data) => messages.push(String(data)));
  await expect.poll(() => messages, { timeout: 10_000 }).toEqual(['{"change":"resync"}']);
  const { id } = (await rest("/v1/profiles", { name: "Shop" })).body;
  await expect
    .poll(() => messages[1], { timeout: 10_000 })
    .toBe(JSON.stringify({ change: "created", resource: "profile", id }));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.send("{}");
  expect(await closed).toBe(1008);
  const refused = open(await gateway.addAccount({ scopes: ["sessions:read"] }));
  const status = new Promise((resolve) =>
    refused.once("unexpected-response", (_, { statusCode }) => resolve(statusCode)),
  );
  expect(await status).toBe(403);
});

test("reports the places of waiting creates", async () => {
  key = await gateway.addAccount({ tier: "free" });
  rest = gateway.as(key);
  const { id } = (await rest("/v1/sessions", {})).body;
  const client = createClient(AccountService, createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" }));
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const watched = client.watch({}, { headers: { authorization: `Bearer ${key}` }, signal: over.signal });
  const notices = watched[Symbol.asyncIterator]();
  await notices.next();
  const waiting = rest("/v1/sessions", { wait_for_slot_ms: 60_000 });
  const queued = (await notices.next()).value;
  expect(queued).toMatchObject({
    change: AccountChange.QUEUED,
    resource: AccountResource.SESSION,
    id: expect.stringMatching(/^ses_/),
    queuePlace: 1,
  });
  await end(`/v1/sessions/${id}`);
  const { status, body } = await waiting;
  expect([status, body.id]).toEqual([201, queued.id]);
});

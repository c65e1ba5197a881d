import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { BareClient, borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";

let scene: CdpScene;
let session: string;
/** Session to which only one test connects. */
let other: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  [session, other] = await Promise.all([scene.open(), scene.open()]);
});
afterAll(() => scene?.[Symbol.asyncDispose]());

async function connect(url: string, headers?: Record<string, string>): Promise<BareClient> {
  const client = await BareClient.connect(url, headers);
  onTestFinished(() => client[Symbol.dispose]());
  return client;
}

/** Returns the HTTP status with which a connection is refused. */
async function refusal(url: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => undefined);
  const opened = once(socket, "open").then(() => {
    throw new Error("the connection was opened");
  });
  const [, response] = await Promise.race([once(socket, "unexpected-response"), opened]);
  response.resume();
  return response.statusCode;
}

const address = () => `${scene.service.url.replace("http", "ws")}${session}/cdp`;
const withKey = (key = scene.service.key) => ({ authorization: `Bearer ${key}` });

test("a session's token opens only the session's CDP connection", async () => {
  const url = await scene.cdpUrl(session);
  expect(url).toMatch(/^ws:\/\/localhost:\d+\/v1\/sessions\/ses_\w+\/cdp\/phc_\w+$/);
  const client = await connect(url);
  expect((await client.send("Browser.getVersion")).result.product).toContain("Chrome");

  const token = url.slice(url.lastIndexOf("/") + 1);
  expect(await refusal(`${scene.service.url.replace("http", "ws")}${other}/cdp/${token}`)).toBe(404);
  expect(await refusal(address(), withKey(`phc_${"0".repeat(26)}_${"0".repeat(40)}`))).toBe(401);
  for (const path of [`${session}/state`, "/v1/sessions", `${session}/cdp-url`]) {
    const { status, body } = await scene.rest(path, path.endsWith("url") ? {} : undefined, { headers: withKey(token) });
    expect([status, body.type], path).toEqual([403, expect.stringContaining("/forbidden")]);
  }
});

test("an API key in the path is refused, because intermediaries log paths", async () => {
  const { key } = scene.service;
  expect(await refusal(`${address()}/${key}`)).toBe(403);
  const version = await fetch(`${scene.service.url}${session}/cdp/${key}/json/version`);
  expect([version.status, (await version.json()).detail]).toEqual([403, expect.stringContaining("Authorization")]);
});

test("/json/version returns the WebSocket URL of its own address, with or without a trailing slash", async () => {
  const url = await scene.cdpUrl(session);
  const byToken = url.replace("ws:", "http:");
  for (const slash of ["", "/"]) {
    const found = await (await fetch(`${byToken}/json/version${slash}`)).json();
    expect(found).toMatchObject({ "Protocol-Version": "1.3", webSocketDebuggerUrl: url });
    const own = await scene.rest(`${session}/cdp/json/version${slash}`);
    expect(own.body.webSocketDebuggerUrl).toBe(url.slice(0, url.lastIndexOf("/")));
  }
  expect((await fetch(`${scene.service.url}${session}/cdp/json/version`)).status).toBe(401);
});

test("revoking a session's addresses disconnects only clients connected through them", async () => {
  const url = await scene.cdpUrl(session);
  const [byUrl, byKey] = [await connect(url), await connect(address(), withKey())];
  const { status } = await scene.rest(`${session}/cdp-url`, undefined, { method: "DELETE" });
  expect(status).toBe(204);
  expect(await byUrl.closed).toEqual({ code: 1008, reason: "revoked-key" });
  expect(await refusal(url)).toBe(401);
  expect((await byKey.send("Browser.getVersion")).error).toBeUndefined();
});

test("a session allows four concurrent connections and a new one after a disconnect", async () => {
  const own = await scene.open();
  const url = await scene.cdpUrl(own);
  const clients = await Promise.all([1, 2, 3, 4].map(() => connect(url)));
  expect(await refusal(url)).toBe(429);
  clients[0]?.socket.close();
  await expect
    .poll(() =>
      BareClient.connect(url).then(
        (client) => client[Symbol.dispose](),
        () => "refused",
      ),
    )
    .toBe(undefined);
  await scene.rest(own, undefined, { method: "DELETE" });
  for (const client of clients.slice(1))
    expect(await client.closed).toEqual({ code: 1000, reason: "session-destroyed" });
  expect(await refusal(url)).toBe(410);
});

test("the session's event stream reports connected and disconnected clients", async () => {
  const stream = await fetch(`${scene.service.url}${other}/events`, { headers: withKey() });
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  onTestFinished(() => reader?.cancel());
  let told = "";
  const receive = async (text: string): Promise<void> => {
    while (!told.includes(text)) {
      const { value = "", done = true } = (await reader?.read()) ?? {};
      if (done) throw new Error(`the stream has ended: ${stream.status} ${told}`);
      told += value;
    }
  };
  const url = await scene.cdpUrl(other);
  for (const [end, reason] of [
    [(client: BareClient) => client.socket.close(), "closed"],
    [(client: BareClient) => client.socket.terminate(), "lost"],
    [(client: BareClient) => void client.send("Browser.close").catch(() => undefined), "browser_closed"],
  ] as const) {
    const client = await connect(url);
    await client.send("Browser.getVersion");
    end(client);
    await receive(`"reason":"${reason}"`);
  }
  expect(told.match(/^event: session\.cdp_connected/gm)).toHaveLength(3);
  expect(told).toMatch(/"messages":1,"duration_ms":\d+/);
});

test("a binary frame closes the connection with its specific code", async () => {
  const client = await connect(await scene.cdpUrl(session));
  client.socket.send(Buffer.from("{}"), { binary: true });
  expect(await client.closed).toEqual({ code: 1003, reason: "messages are text frames" });
});

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chromium } from "playwright";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { admin } from "../support/admin.ts";
import { BareClient, borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { longTest } from "../support/long-test.ts";
import { restClient } from "../support/rest.ts";
import { connectOften } from "./connect-often.ts";

let scene: CdpScene;
beforeAll(async () => {
  scene = await borrowCdpScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const base = () => `${scene.service.url.replace("http", "ws")}/connect`;
const withKey = (key = scene.service.key) => ({ authorization: `Bearer ${key}` });

async function connect(url: string, headers?: Record<string, string>): Promise<BareClient> {
  const client = await BareClient.connect(url, headers);
  onTestFinished(() => client[Symbol.dispose]());
  return client;
}

/** Returns the problem with which a connection is refused. */
async function refusal(url: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => undefined);
  const opened = once(socket, "open").then(() => {
    throw new Error("the connection was opened");
  });
  const [, response] = await Promise.race([once(socket, "unexpected-response"), opened]);
  return JSON.parse(Buffer.concat(await response.toArray()).toString());
}

async function running(rest = scene.rest): Promise<string[]> {
  const { body } = await rest("/v1/sessions?status=live");
  return body.data.map(({ id }: { id: string }) => id);
}

/** Waits until no session is live. Returns the reason of the last session's end. */
async function ended(rest = scene.rest): Promise<string> {
  await expect.poll(() => running(rest)).toEqual([]);
  const { body } = await rest("/v1/sessions?limit=1");
  return body.data[0].ended_reason;
}

/** Creates a key of a new account. */
const addAccount = (tier: string): Promise<string> =>
  admin({ DATABASE_URL: scene.service.databaseUrl }, "create-key", "--account", randomUUID(), "--tier", tier);

test("Playwright creates a session by connecting, and ends it by closing", async () => {
  const browser = await chromium.connectOverCDP(`${base()}/${scene.service.key}`);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(scene.site.url("/plain.html"));
  expect(await page?.title()).toBe("Plain");
  expect(await running()).toHaveLength(1);
  await browser.close();
  expect(await ended()).toBe("destroyed");
});

test("Puppeteer creates a session by /json/version, and ends it by Browser.close", async () => {
  const browserURL = `${scene.service.url}/connect?token=${scene.service.key}`;
  const version = await fetch(browserURL.replace("?", "/json/version?viewport=800x600&label=by:puppeteer&"));
  expect([version.headers.get("cache-control"), version.headers.get("referrer-policy")]).toEqual([
    "no-store",
    "no-referrer",
  ]);
  const { webSocketDebuggerUrl: url } = (await version.json()) as { webSocketDebuggerUrl: string };
  expect(url).toMatch(/\/connect\/pht_\w+\?viewport=800x600&label=by%3Apuppeteer$/);
  const list = await fetch(`${scene.service.url}/connect/${scene.service.key}/json/list`);
  expect([await list.json(), await running()]).toEqual([[], []]);

  const browserWSEndpoint = url.replace(/^ws:\/\/[^/]+/, scene.service.url.replace("http", "ws"));
  expect((await refusal(`${browserWSEndpoint}&locale=de`)).type).toContain("/invalid-key");
  const ticket = new URL(url).pathname.split("/").at(-1) ?? "";
  expect((await scene.rest("/v1/sessions", undefined, { headers: withKey(ticket) })).status).toBe(403);
  const browser = await connectPuppeteer({ browserWSEndpoint, defaultViewport: null });
  const [page] = await browser.pages();
  expect(await page?.evaluate("[innerWidth, innerHeight]")).toEqual([800, 600]);
  const { body } = await scene.rest("/v1/sessions?label=by:puppeteer");
  expect(body.data).toHaveLength(1);
  expect((await refusal(browserWSEndpoint)).detail).toContain("the ticket was already used");
  await browser.close();
  expect(await ended()).toBe("destroyed");
});

test("a client whose connection broke connects again by name", async () => {
  const url = `${base()}?name=crawler`;
  const first = await connect(url, withKey());
  const [handshake] = await Promise.all([first.send("Browser.getVersion"), running()]);
  expect(handshake.result.product).toContain("Chrome");
  const [id] = await running();
  first.socket.terminate();
  const second = await connect(url, withKey());
  expect((await second.send("Browser.getVersion")).error).toBeUndefined();
  expect(await running()).toEqual([id]);
  const third = await connect(`${base()}?session_id=${id}`, withKey());
  second.socket.close(1000);
  await second.closed;
  // The third client is still connected.
  expect((await third.send("Browser.getVersion")).error).toBeUndefined();
  third.socket.close();
  expect(await ended()).toBe("destroyed");
});

test("two clients that connect by one name at once share a session", async () => {
  const url = `${base()}?name=shared`;
  const clients = await Promise.all([connect(url, withKey()), connect(url, withKey())]);
  expect(await running()).toHaveLength(1);
  for (const { socket } of clients) socket.close();
  expect(await ended()).toBe("destroyed");
});

test("a session with keep_alive continues after its last client", async () => {
  const client = await connect(`${base()}?keep_alive=true`, withKey());
  client.socket.close();
  await client.closed;
  const rejoined = await connect(`${base()}?session_id=${(await running())[0]}`, withKey());
  await rejoined.send("Browser.close").catch(() => undefined);
  await rejoined.closed;
  const [id] = await running();
  expect((await scene.rest(`/v1/sessions/${id}/state`)).body.status).toBe("live");
  await scene.rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
});

longTest(
  "a client on Free connects again right after closing until the bucket of session creates is empty",
  async () => {
    const key = await addAccount("free");
    const rest = restClient({ url: scene.service.url, key });
    for (let turn = 0; turn < 5; turn += 1) {
      const client = await connect(base(), withKey(key));
      if (turn === 0) {
        expect(await running(rest)).toEqual([client.sessionId]);
        expect((await refusal(base(), withKey(key))).type).toContain("/concurrency-limit");
      }
      client.socket.close();
      await client.closed;
    }
    const { detail, retry_after_seconds: seconds } = await refusal(base(), withKey(key));
    expect(detail).toBe(`rate limit "sessions:create" of tier free exceeded: retry after ${seconds} s`);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await ended(rest)).toBe("destroyed");
  },
);

test("connections on Free leave nothing behind, however they are closed", async () => {
  // Each way to close is used once. connect.long.test.ts connects 200 times.
  await connectOften(scene.service, 3);
}, 180_000);

test("a client that connects by name right after closing gets a new session", async () => {
  const url = `${base()}?name=again`;
  const sessions = new Set<string | undefined>();
  for (let turn = 0; turn < 2; turn += 1) {
    const client = await connect(url, withKey());
    sessions.add(client.sessionId);
    client.socket.close(1000);
    await client.closed;
  }
  expect(sessions.size).toBe(2);
  expect(await ended()).toBe("destroyed");
});

test("a session ends with its last client even if a page hangs", async () => {
  const client = await connect(base(), withKey());
  const page = await client.attach();
  void client.send("Runtime.evaluate", { expression: "for (;;);" }, page).catch(() => undefined);
  await client.send("Browser.getVersion");
  client.socket.close(1000);
  expect(await ended()).toBe("destroyed");
});

test("refuses other bearers in the address, faulty options, and other protocols, with what to do instead", async () => {
  const cdpToken = `phc_${"0".repeat(26)}_${"0".repeat(40)}`;
  expect((await refusal(`${base()}/phk_none`)).type).toContain("/invalid-key");
  expect((await refusal(base())).type).toContain("/unauthorized");
  expect((await refusal(`${base()}/${cdpToken}`)).type).toContain("/invalid-key");
  const { body } = await scene.rest("/v1/oauth/token", "", {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "client_credentials",
      client_id: `key_${scene.service.key.slice(4, 30)}`,
      client_secret: scene.service.key,
    }),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  expect((await refusal(`${base()}?token=${body.access_token}`)).detail).toContain("begin with phk_");

  const unknown = await refusal(`${base()}?timeout=60`, withKey());
  expect(unknown.errors).toEqual([
    { field: "timeout", message: expect.stringMatching(/expected one of name, .*label/) },
  ]);
  const both = await refusal(`${base()}?session_id=ses_1&name=x`, withKey());
  expect(both.errors).toEqual([{ field: "name", message: "must be absent with session_id" }]);
  expect((await refusal(`${base()}?session_id=ses_1`, withKey())).type).toContain("/not-found");
  expect((await refusal(`${base()}?runtime=lynx`, withKey())).status).toBe(400);

  await expect(chromium.connect(`${base()}?token=${scene.service.key}`)).rejects.toThrow(/connectOverCDP/);
  for (const path of ["session", "key/session", "key/wd/hub/session", "json", "key/json?a=b"]) {
    const response = await fetch(`${scene.service.url}/connect/${path}`, { method: "POST", body: "{}" });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("connectOverCDP(url)")]);
  }
  expect(await running()).toEqual([]);
});

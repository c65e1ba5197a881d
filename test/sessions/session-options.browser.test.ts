import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import type { FixtureSite } from "../support/fixture-site.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { runtimes } from "../support/runtimes.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

let site: FixtureSite;
let service: WarmService;
let rest: Rest;

beforeAll(async () => {
  ({ service, site } = await borrowService());
  rest = restClient(service);
});
afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

/** Launches a session for a test, and returns its path. */
async function open(request: object): Promise<string> {
  const { status, body } = await rest("/v1/sessions", request);
  expect(status, JSON.stringify(body)).toBe(201);
  const session = `/v1/sessions/${body.id}`;
  onTestFinished(async () => {
    await rest(session, undefined, { method: "DELETE" });
  });
  return session;
}

const patch = (session: string, changes: object) =>
  rest(session, undefined, {
    method: "PATCH",
    body: JSON.stringify(changes),
    headers: { "content-type": "application/json" },
  });

/** Runs a script in a page of the site, and returns the page's title when it is no longer that of the page. */
async function runScript(session: string, script: string): Promise<string> {
  const url = site.url(`/script.html?${script.length}#${encodeURIComponent(script)}`);
  expect((await rest(`${session}/navigate`, { url })).status).toBe(200);
  let title = "";
  await expect
    .poll(async () => (title = (await rest(`${session}/state`)).body.title), { timeout: 20_000 })
    .not.toMatch(/^(Script)?$/);
  return title;
}

const other = (path: string) => `http://${site.hosts[1]}${path}`;

describe("PATCH of a session", () => {
  test("changes its timeouts and labels", async () => {
    const session = await open({ timeout_seconds: 60, labels: { env: "test" } });
    const { body: before } = await rest(session);
    const changed = await patch(session, { timeout_seconds: 120, idle_timeout_seconds: 40, labels: { env: "prod" } });
    expect(changed).toMatchObject({ status: 200, body: { idle_timeout_seconds: 40, labels: { env: "prod" } } });
    const lifetime = Date.parse(changed.body.expires_at) - Date.parse(changed.body.live_at);
    expect(lifetime).toBe(120_000);
    expect(Date.parse(changed.body.expires_at)).toBeGreaterThan(Date.parse(before.expires_at));
    expect((await rest(session)).body).toEqual(changed.body);
    const cleared = await patch(session, { labels: null });
    expect(cleared.body).toMatchObject({ idle_timeout_seconds: 40, labels: {}, expires_at: changed.body.expires_at });
    const refused = [
      { timeout_seconds: null },
      { timeout_seconds: 59 },
      { idle_timeout_seconds: 9 },
      { colour: "red" },
    ];
    for (const changes of refused) expect((await patch(session, changes)).status).toBe(400);
    await rest(session, undefined, { method: "DELETE" });
    expect((await patch(session, { labels: {} })).status).toBe(410);
  });
});

/** Sessions that become idle while the other tests run, by runtime. */
const idle = new Map<BrowserRuntime, { readonly session: string; readonly patchedAt: number }>();
beforeAll(async () => {
  for (const runtime of runtimes) {
    const { body } = await rest("/v1/sessions", { runtime, idle_timeout_seconds: 3_600 });
    const session = `/v1/sessions/${body.id}`;
    const patchedAt = Date.now();
    expect((await patch(session, { idle_timeout_seconds: 10 })).status).toBe(200);
    idle.set(runtime, { session, patchedAt });
  }
});

describe.each(runtimes)("options of a session in %s", (runtime) => {
  test("allowed_domains keeps it to its hosts", async () => {
    const session = await open({ runtime, allowed_domains: ["localhost"] });
    expect((await rest(session)).body.allowed_domains).toEqual(["localhost"]);
    expect((await rest(`${session}/navigate`, { url: other("/plain.html") })).status).toBe(200);
    const outside = await rest(`${session}/navigate`, { url: site.url("/plain.html") });
    expect(outside.body).toMatchObject({
      blocked_by: "egress",
      detail: expect.stringContaining("not an allowed host"),
    });
    expect((await rest(`${session}/state`)).body.egress.refused).toContain(site.host);
  });

  test("block refuses kinds of resources and hosts, and counts them", async () => {
    const block = { kinds: ["image", "script", "stylesheet", "ads"], hosts: ["localhost"] };
    const session = await open({ runtime, block });
    expect((await rest(session)).body.block).toEqual(block);
    const sent = site.requests.length;
    const title = await runScript(
      session,
      `const load = (tag, fields) => new Promise((settle) => {
        const element = Object.assign(document.createElement(tag), fields);
        element.onload = () => settle("loaded");
        element.onerror = () => settle("failed");
        document.head.append(element);
      });
      const fetched = (url) => fetch(url, { mode: "no-cors" }).then(() => "settled", () => "settled");
      Promise.all([
        load("img", { src: "/a.png" }), load("script", { src: "/a.js" }), load("link", { rel: "stylesheet", href: "/a.css" }),
        fetched("${other("/no-content")}"), fetched("http://cdn.adverts.example/a"), fetched("http://banners.example/a"),
        fetched("/plain.html"),
      ]).then((results) => (document.title = results.join()));`,
    );
    expect(title).toBe("failed,failed,failed,settled,settled,settled,settled");
    const requested = site.requests.slice(sent).filter((line) => line !== "GET /favicon.ico");
    expect(requested).toEqual(["GET /script.html", "GET /plain.html"]);
    const { blocked, refused } = (await rest(`${session}/state`)).body.egress;
    expect(blocked).toMatchObject({ image: 1, script: 1, stylesheet: 1 });
    expect([blocked.hosts >= 1, blocked.ads >= 2, refused]).toEqual([true, true, []]);
    const direct = await rest(`${session}/navigate`, { url: other("/plain.html") });
    expect(direct.body).toMatchObject({ blocked_by: "egress", detail: expect.stringContaining("is blocked by") });
  });

  test("geolocation reaches all pages without a prompt, and webdriver is hidden on request", async () => {
    const script = `navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy } }) =>
        (document.title = [latitude, longitude, accuracy, navigator.webdriver].join()),
      ({ code }) => (document.title = "error " + [code, navigator.webdriver]));`;
    const geolocation = { latitude: 48.2082, longitude: -16.3738, accuracy: 20 };
    const session = await open({ runtime, geolocation, webdriver: false });
    expect((await rest(session)).body).toMatchObject({ geolocation, webdriver: false });
    expect(await runScript(session, script)).toBe("48.2082,-16.3738,20,false");
    const plain = await open({ runtime });
    expect((await rest(plain)).body).toMatchObject({ geolocation: null, webdriver: true });
    expect(await runScript(plain, script)).toBe("error 1,true");
  });
});

test.each([
  [{ allowed_domains: ["https://example.com/"] }, "allowed_domains[0]"],
  [{ block: { kinds: ["video"] } }, "block.kinds[0]"],
  [{ block: { hosts: ["a b"] } }, "block.hosts[0]"],
  [{ geolocation: { latitude: 91, longitude: 0 } }, "geolocation.latitude"],
  [{ geolocation: { latitude: 1 } }, "geolocation.longitude"],
  [{ geolocation: { latitude: 1, longitude: 1, accuracy: -1 } }, "geolocation.accuracy"],
  [{ webdriver: "no" }, "webdriver"],
])("create refuses %j", async (request, field) => {
  const { status, body } = await rest("/v1/sessions", request);
  expect({ status, body }).toMatchObject({ status: 400, body: { errors: [{ field }] } });
});

test("create reports a kind of hosts for which the operator has no list", async () => {
  const { body } = await rest("/v1/sessions", { block: { kinds: ["trackers"] } });
  expect(body).toMatchObject({
    type: expect.stringMatching(/driver-not-integrated$/),
    detail: expect.stringContaining("BLOCK_LISTS"),
  });
});

test("a session announces its end a minute ahead", async () => {
  const session = await open({ timeout_seconds: 62 });
  const { body } = await rest(session);
  const events = await fetch(`${service.url}${session}/events`, {
    headers: { authorization: `Bearer ${service.key}` },
    signal: AbortSignal.timeout(30_000),
  });
  let text = "";
  for await (const part of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (/event: session\.ending_soon\n.*\n\n/s.test(text)) break;
  }
  const remaining = Date.parse(body.expires_at) - Date.now();
  const { data } = JSON.parse(/data: (.*session\.ending_soon.*)/.exec(text)?.[1] ?? "");
  expect(data).toMatchObject({ session_id: body.id, ended_reason: "expired" });
  expect(Math.abs(Date.parse(data.ends_at) - Date.parse(body.expires_at))).toBeLessThan(2_000);
  expect(remaining).toBeGreaterThan(50_000);
  expect(remaining).toBeLessThan(60_500);
});

test.each(runtimes)("a session in %s ends by its new idle timeout", async (runtime) => {
  const { session = "", patchedAt = 0 } = idle.get(runtime) ?? {};
  await expect.poll(async () => (await rest(session)).body.ended_reason, { timeout: 40_000 }).toBe("idle");
  expect(Date.parse((await rest(session)).body.ended_at) - patchedAt).toBeGreaterThan(9_500);
});

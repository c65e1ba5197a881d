import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
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

async function makeProfile(): Promise<string> {
  const { id } = (await rest("/v1/profiles", { name: "Storage state" })).body;
  onTestFinished(async () => {
    await expect.poll(async () => (await rest(`/v1/profiles/${id}`, undefined, { method: "DELETE" })).status).toBe(204);
  });
  return id;
}

const exportOf = (profile: string) => rest(`/v1/profiles/${profile}/storage-state`);
const importTo = (profile: string, state: unknown) =>
  rest(`/v1/profiles/${profile}/storage-state`, undefined, {
    method: "PUT",
    body: typeof state === "string" ? state : JSON.stringify(state),
    headers: { "content-type": "application/json" },
  });

/** Launches a session with the profile, runs a script in a page of the site, and ends the session. */
async function runIn(profile: string, runtime: string, script: string): Promise<string> {
  const { status, body } = await rest("/v1/sessions", { profile_id: profile, runtime });
  expect(status, JSON.stringify(body)).toBe(201);
  const session = `/v1/sessions/${body.id}`;
  const url = site.url(`/script.html?${script.length}#${encodeURIComponent(script)}`);
  await rest(`${session}/navigate`, { url });
  let title = "";
  await expect
    .poll(async () => (title = (await rest(`${session}/state`)).body.title), { timeout: 20_000 })
    .not.toMatch(/^(Script)?$/);
  await rest(session, undefined, { method: "DELETE" });
  const active = async () => (await rest(`/v1/profiles/${profile}`)).body.active_session_id;
  await expect.poll(active, { timeout: 20_000 }).toBeNull();
  return title;
}

/** Launches Playwright's own browser, without the service. */
async function launchPlaywright(): Promise<Browser> {
  const { "headless-shell": executablePath } = findBrowsers({
    env: process.env,
    dataDirectory: "/nonexistent",
    platform: process.platform,
    disk: realDisk,
  });
  const home = await mkdtemp(join(tmpdir(), "playwright-"));
  const browser = await chromium.launch({
    ...(executablePath !== undefined && { executablePath }),
    chromiumSandbox: false,
    env: { ...process.env, HOME: home },
  });
  onTestFinished(async () => {
    await browser.close();
    await rm(home, { recursive: true, force: true });
  });
  return browser;
}

const text = "Grüße, 世界 \u{1f600}";
const leave = `document.cookie = "login=1; max-age=86400"; document.cookie = "visit=2";
  localStorage.setItem("token", ${JSON.stringify(text)}); localStorage.setItem("plain", "a".repeat(100_000));`;
const found = `[document.cookie.split("; ").sort(), localStorage.getItem("token"), (localStorage.getItem("plain") ?? "").length].join("|")`;
const whole = `login=1,visit=2|${text}|100000`;

test.each(runtimes)("a profile of %s is signed in by Playwright's state, and exported to one", async (runtime) => {
  const playwright = await launchPlaywright();
  const first = await (await playwright.newContext()).newPage();
  await first.goto(site.url("/plain.html"));
  await first.evaluate(leave);
  const profile = await makeProfile();
  const imported = await importTo(profile, await first.context().storageState());
  expect(imported).toMatchObject({ status: 200, body: { engine: "chromium" } });
  // Chromium writes only changed values, so these are deleted before the session writes them.
  const rewrite = `document.title = ${found}; localStorage.clear(); ${leave}
    document.cookie = "added=3; max-age=86400"; localStorage.setItem("added", "3");`;
  expect(await runIn(profile, runtime, rewrite)).toBe(whole);
  const kept = `added=3,${whole}3`;
  const again = `document.title = ${found} + localStorage.getItem("added")`;
  expect(await runIn(profile, runtime, again)).toBe(kept);
  const { status, body, headers } = await exportOf(profile);
  expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(body.cookies).toHaveLength(3);
  const [own] = body.origins;
  expect(own.origin).toBe(`http://${site.host}`);
  expect(own.localStorage).toContainEqual({ name: "added", value: "3" });
  const second = await (await playwright.newContext({ storageState: body })).newPage();
  await second.goto(site.url("/plain.html"));
  expect(await second.evaluate(`${found} + localStorage.getItem("added")`)).toBe(kept);
});

test("an export and an import of the same state change nothing, and both are audited", async () => {
  const profile = await makeProfile();
  expect((await exportOf(profile)).body).toEqual({ cookies: [], origins: [] });
  const cookie = { domain: ".example.com", path: "/", httpOnly: true, secure: true, sameSite: "None" };
  const state = {
    cookies: [
      { name: "a", value: "1", expires: -1, ...cookie },
      { name: "b", value: "2", expires: 2_000_000_000, ...cookie },
    ],
    origins: [{ origin: "https://example.com", localStorage: [{ name: text, value: "" }] }],
  };
  expect((await importTo(profile, state)).status).toBe(200);
  expect((await exportOf(profile)).body).toEqual(state);
  const { data } = (await rest("/v1/account/audit-log?limit=20")).body;
  const actions = data
    .filter(({ subject_id: id }: { subject_id: string }) => id === profile)
    .map(({ action }: { action: string }) => action);
  expect(actions).toEqual([
    "profile.export_storage_state",
    "profile.import_storage_state",
    "profile.export_storage_state",
    "profile.create",
  ]);
});

test("an import is refused while a session uses the profile", async () => {
  const profile = await makeProfile();
  const { body } = await rest("/v1/sessions", { profile_id: profile });
  const refused = await importTo(profile, { cookies: [], origins: [] });
  expect(refused).toMatchObject({ status: 409, body: { active_session_id: body.id } });
  await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
});

const cookie = { name: "a", value: "1", domain: "a.example", path: "/", expires: -1, httpOnly: false, secure: false };

test.each([
  ["no JSON", "{", "body"],
  ["a list", "[]", "body"],
  ["no origins", { cookies: [] }, "origins"],
  ["a cookie without sameSite", { cookies: [cookie], origins: [] }, "cookies[0].sameSite"],
  [
    "a cookie with a line break",
    { cookies: [{ ...cookie, sameSite: "Lax", value: "a\nb" }], origins: [] },
    "cookies[0].value",
  ],
  [
    "a cookie of a path",
    { cookies: [{ ...cookie, sameSite: "Lax", domain: "a/b" }], origins: [] },
    "cookies[0].domain",
  ],
  [
    "a path as origin",
    { cookies: [], origins: [{ origin: "https://a.example/b", localStorage: [] }] },
    "origins[0].origin",
  ],
  ["a file origin", { cookies: [], origins: [{ origin: "file:///etc", localStorage: [] }] }, "origins[0].origin"],
  [
    "items without value",
    { cookies: [], origins: [{ origin: "https://a.example", localStorage: [{ name: "a" }] }] },
    "origins[0].localStorage",
  ],
  [
    "IndexedDB",
    { cookies: [], origins: [{ origin: "https://a.example", localStorage: [], indexedDB: [{}] }] },
    "origins[0].indexedDB",
  ],
  ["too many cookies", { cookies: Array(3_301).fill({}), origins: [] }, "cookies"],
])("an import refuses %s", async (_name, state, field) => {
  const profile = await makeProfile();
  const { status, body } = await importTo(profile, state);
  expect({ status, body }).toMatchObject({ status: 400, body: { errors: [{ field }] } });
});

test("an import refuses a state above 16 MiB", async () => {
  const profile = await makeProfile();
  const value = "a".repeat(16 * 2 ** 20);
  const origins = [{ origin: "https://a.example", localStorage: [{ name: "a", value }] }];
  const { status } = await importTo(profile, { cookies: [], origins });
  expect([400, 413]).toContain(status);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { type Rest, restClient } from "../support/rest.ts";
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

const fetchPage = (path: string, more: object = {}) => rest("/v1/fetch", { url: site.url(path), ...more });
const scripted = (script: string) => `/script.html?${script.length}#${encodeURIComponent(script)}`;
const running = async () => {
  const { body } = await rest("/v1/sessions");
  return body.data.filter((session: { ended_at: string | null }) => session.ended_at === null);
};

test("fetch returns all formats of a page in one call, and ends its session", async () => {
  const formats = ["markdown", "html", "links", "screenshot", "pdf"];
  const { status, body } = await fetchPage("/article.html", { formats, timeout_ms: 60_000 });
  expect(body.incomplete_reason ?? null).toBeNull();
  expect({ status, body }).toMatchObject({
    status: 200,
    body: { url: site.url("/article.html"), http_status: 200, title: "Tides - Harbour Notes", complete: true },
  });
  expect(body.markdown).toMatch(/^# How tides work\n\nTides are caused/);
  expect(body.html).toContain("How tides work</h1>");
  expect(body.links).toContainEqual({ url: site.url("/moon.html?a=1&b=2"), text: "gravity of the moon" });
  expect(Buffer.from(body.screenshot, "base64").toString("latin1", 1, 4)).toBe("PNG");
  expect(Buffer.from(body.pdf, "base64").toString("latin1", 0, 4)).toBe("%PDF");
  expect(await running()).toEqual([]);
});

test.each([
  ["a page that is never idle", scripted("fetch('/silent')"), /^the network was not idle after \d+ ms/],
  ["a changing page", scripted("setInterval(() => (document.title += '.'), 50)"), /^the document was changing after/],
  ["a huge page", scripted("document.body.textContent = 'word '.repeat(1_000_000)"), /markdown: .*too large/],
  ["a page that never loads", "/endless-load.html", /^the page had not loaded after \d+ ms/],
  ["a download", "/download", /^the URL is a download \(report\.csv\)/],
  ["a page without text", scripted("document.body.textContent = ''"), /^the page shows no text$/],
  ["a page that hangs", scripted("setTimeout(() => { for (;;); }, 300)"), /./],
])("fetch answers %s in time with the reason why it is not complete", async (_name, path, reason) => {
  const beganAt = performance.now();
  const { status, body } = await fetchPage(path, { timeout_ms: 8_000 });
  expect({ status, body }).toMatchObject({ status: 200, body: { complete: false } });
  expect(body.incomplete_reason).toMatch(reason);
  expect(performance.now() - beganAt).toBeLessThan(30_000);
});

test("fetch reports the HTTP status of an error page, and fails for pages that cannot be reached", async () => {
  expect(await fetchPage("/not-found")).toMatchObject({ status: 200, body: { http_status: 404, title: "Nowhere" } });
  const unreachable = { type: expect.stringMatching(/\/driver-error$/) };
  expect((await fetchPage("/to-private")).body).toMatchObject(unreachable);
  expect((await fetchPage("/redirect-loop")).body).toMatchObject(unreachable);
  expect((await rest("/v1/fetch", { url: "file:///etc/passwd" })).status).toBe(400);
  expect(await running()).toEqual([]);
});

test("fetch ends its session when its client leaves", async () => {
  const leaving = new AbortController();
  const answer = rest("/v1/fetch", { url: site.url("/silent") }, { signal: leaving.signal });
  await expect.poll(async () => (await running()).length, { timeout: 20_000 }).toBe(1);
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await expect.poll(running, { timeout: 20_000 }).toEqual([]);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

let site: FixtureSite;
let service: WarmService;
let rest: Rest;
/** A reachable port without a server. */
let silentPort: number;

beforeAll(async () => {
  const borrowed = await borrowService();
  ({ service, site } = borrowed);
  [silentPort] = borrowed.ports;
  rest = restClient(service);
});
afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

const fetchPage = (path: string, more: object = {}) => rest("/v1/fetch", { url: site.url(path), ...more });
const scripted = (script: string) => `/script.html?${script.length}#${encodeURIComponent(script)}`;
/** Counts the running sessions of the account, and the browsers in which its fetches run. */
const inUse = async () => {
  const { body } = await rest("/v1/account/me");
  return body.account.quotas.find(({ quota }: { quota: string }) => quota === "concurrent_sessions").used;
};

test("fetch returns all formats of a page in one call, without a session", async () => {
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
  expect(await inUse()).toBe(0);
  expect((await rest("/v1/sessions?limit=1")).body.data).toEqual([]);
});

/** Checks that fetch answers in time with the reason why a page is not complete. */
async function expectIncomplete(path: string, reason: RegExp, timeoutMs = 4_000): Promise<void> {
  const beganAt = performance.now();
  const { status, body } = await fetchPage(path, { timeout_ms: timeoutMs });
  expect({ status, body }).toMatchObject({ status: 200, body: { complete: false } });
  expect(body.incomplete_reason).toMatch(reason);
  expect(performance.now() - beganAt).toBeLessThan(30_000);
}

// Most of these cases wait for a part of the timeout, so they can run concurrently.
test.concurrent.each(
  withLong<[what: string, path: string, reason: RegExp]>(
    [
      ["a page that is never idle", scripted("fetch('/silent')"), /^the network was not idle after \d+ ms/],
      [
        "a changing page",
        scripted("setInterval(() => (document.title += '.'), 50)"),
        /^the document was not idle after/,
      ],
      ["a document that never ends", "/endless-document", /^the page had not loaded after \d+ ms/],
      ["a download that never ends", "/huge-download", /^the URL is a download \(huge\.bin\)/],
      [
        "a page that opens windows",
        scripted("setInterval(() => open('about:blank'), 20); fetch('/silent')"),
        /network was not idle/,
      ],
      ["a bot check", "/endless-check", /the page shows a bot check \(generic\)/],
      ["a download", "/download", /^the URL is a download \(report\.csv\)/],
      ["a page without text", scripted("document.body.textContent = ''"), /^the page shows no text$/],
      ["a page that hangs", scripted("setTimeout(() => { for (;;); }, 300)"), /./],
    ],
    [["a page that never loads", "/endless-load.html", /^the page had not loaded after \d+ ms/]],
  ),
)("fetch answers %s in time with the reason why it is not complete", (_name, path, reason) =>
  expectIncomplete(path, reason),
);

test("fetch answers a huge page in time with the reason why it is not complete", () =>
  // The layout takes seconds on a busy machine.
  expectIncomplete(scripted("document.body.textContent = 'word '.repeat(850_000)"), /markdown: .*too large/, 20_000));

test("fetch answers dialogs of a page, and cuts a huge document", async () => {
  const script = "alert('one'); confirm('two'); prompt('three'); document.body.textContent = 'behind the dialogs'";
  expect((await fetchPage(scripted(script))).body).toMatchObject({ complete: true, markdown: "behind the dialogs" });
  const { body } = await fetchPage("/text?megabytes=8", { formats: ["html"], timeout_ms: 30_000 });
  expect(body).toMatchObject({ complete: false, truncated: ["html"] });
  expect(body.html.length).toBe(1024 * 1024);
});

test("fetch reports the HTTP status of an error page, and fails for pages that cannot be reached", async () => {
  expect(await fetchPage("/not-found")).toMatchObject({ status: 200, body: { http_status: 404, title: "Nowhere" } });
  expect((await rest("/v1/fetch", { url: "file:///etc/passwd" })).status).toBe(400);
  expect((await rest("/v1/fetch", { url: site.url("/"), profile_id: "prf_1" })).status).toBe(400);
});

test.each([
  ["a name that does not exist", () => "http://nowhere.invalid/", { net_error: "ERR_NAME_NOT_RESOLVED" }],
  ["a port without a server", () => `http://127.0.0.1:${silentPort}/`, { net_error: "ERR_CONNECTION_REFUSED" }],
  ["a server without TLS", () => `https://${site.host}/`, { net_error: "ERR_SSL_PROTOCOL_ERROR" }],
  ["an endless redirect", () => site.url("/redirect-loop"), { net_error: "ERR_TOO_MANY_REDIRECTS" }],
  ["a private address", () => "http://127.0.0.2:8765/", { blocked_by: "egress" }],
  ["a redirect to a private address", () => site.url("/to-private"), { blocked_by: "egress" }],
  [
    "a page that leaves for a private address",
    () => site.url(scripted("location = 'http://127.0.0.2:8765/'")),
    { blocked_by: "egress" },
  ],
])("fetch of %s is a driver-error with its cause", async (_name, urlOf, cause) => {
  const { status, body } = await rest("/v1/fetch", { url: urlOf(), timeout_ms: 20_000 });
  expect({ status, body }).toMatchObject({
    status: 502,
    body: { type: expect.stringMatching(/driver-error$/), ...cause },
  });
});

test("fetch waits for the condition of the request instead of an idle page", async () => {
  const late = "fetch('/silent'); setTimeout(() => (document.body.innerHTML = '<p id=late>it is here</p>'), 700)";
  const wait = { kind: "selector", selector: "#late" };
  const { body } = await fetchPage(scripted(late), { wait });
  expect(body).toMatchObject({ complete: true, markdown: "it is here" });
  const never = await fetchPage("/article.html", { wait, timeout_ms: 5_000 });
  expect(never.body).toMatchObject({ complete: false, incomplete_reason: expect.stringMatching(/^wait: /) });
  expect(never.body.markdown).toContain("Tides are caused");
  expect((await fetchPage("/article.html", { wait: {} })).status).toBe(400);
});

test("fetches share no cookies and no storage", async () => {
  const script =
    "document.body.textContent = [document.cookie, localStorage.mark].join(' and '); document.cookie = 'mark=1'; localStorage.mark = 2";
  for (let left = 2; left > 0; left -= 1) expect((await fetchPage(scripted(script))).body.markdown).toBe("and");
});

test("fetch ends when its client leaves", async () => {
  const leaving = new AbortController();
  const answer = rest("/v1/fetch", { url: site.url("/silent") }, { signal: leaving.signal });
  await expect.poll(inUse, { timeout: 20_000 }).toBe(1);
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await expect.poll(inUse, { timeout: 20_000 }).toBe(0);
});

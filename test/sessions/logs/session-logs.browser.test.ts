import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { addAccount } from "../../e2e/support/accounts.ts";
import { BareClient } from "../../support/cdp-proxy-scene.ts";
import type { FixtureSite } from "../../support/fixture-site.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { TestSite } from "../../support/test-site.ts";
import { borrowService, type WarmService } from "../../support/warm-service.ts";

const canaryOf = (what: string): string => `canary${what}${randomBytes(6).toString("hex")}`;
const canaries = {
  query: canaryOf("query"),
  fragment: canaryOf("fragment"),
  header: canaryOf("header"),
  cookie: canaryOf("cookie"),
  body: canaryOf("body"),
  typed: canaryOf("typed"),
  title: canaryOf("title"),
  password: canaryOf("password"),
};
/** Text that the page writes to its console and its dialogs. */
const said = canaryOf("said");

const busyPage = `<!DOCTYPE html><title>${canaries.title}</title><input id=field><script>
document.cookie = "c=${canaries.cookie}";
const headers = { "x-token": "${canaries.header}" };
const post = (path) => fetch(path, { method: "POST", headers, body: "${canaries.body}" }).catch(() => undefined);
console.log("${said}", location.href);
document.querySelector("input").oninput = ({ target }) => {
  history.replaceState(null, "", "?typed=" + target.value + "#" + target.value);
  fetch("/missing?typed=" + target.value, { method: "POST", headers, body: target.value });
};
post("/missing?item=${canaries.query}#${canaries.fragment}");
post("http://127.0.0.1:1/refused?item=${canaries.query}");
post("/fine?item=${canaries.query}");
alert("${said}");
setTimeout(() => { throw new Error("${said} in " + location.href); });
</script>`;

/** Notices whether the console is read: values are then formatted, which runs code of the page. */
const probePage = `<!DOCTYPE html><title>unnoticed</title><script>
const notice = () => { document.title = "noticed"; return []; };
Error.prepareStackTrace = notice;
setInterval(() => {
  console.debug(Object.create(new Proxy({}, { ownKeys: notice })));
  console.debug(Object.defineProperty(new Error(), "stack", { get: notice }));
  console.debug(new Error());
}, 20);
</script>`;

const endlessPage = `<!DOCTYPE html><title>Endless</title><script>
let count = 0;
setInterval(() => {
  for (let left = 200; left > 0; left -= 1) { count += 1; console.log("x".repeat(10_000), count); }
  fetch("/missing?" + "x".repeat(10_000));
}, 10);
</script>`;

class LogSite extends TestSite {
  protected override answer({ url = "/" }: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(url, "http://site");
    const page = { "/busy": busyPage, "/probe": probePage, "/endless": endlessPage }[pathname];
    response.setHeader("x-answer", canaries.header);
    if (page !== undefined) response.writeHead(200, { "content-type": "text/html" }).end(page);
    else if (pathname === "/fine") response.writeHead(200).end(canaries.body);
    else if (pathname === "/file")
      response.writeHead(200, { "content-disposition": 'attachment; filename="report.csv"' }).end("a,b");
    else response.writeHead(404).end(canaries.body);
  }
}

let fixtures: FixtureSite;
let service: WarmService;
let rest: Rest;
const site = new LogSite();
let base = "";

beforeAll(async () => {
  const borrowed = await borrowService();
  ({ service, site: fixtures } = borrowed);
  await site.start(borrowed.ports[0]);
  base = `http://${site.host}`;
  rest = restClient(service);
});
afterAll(async () => {
  await service?.stop();
  await fixtures?.stop();
  await site.stop();
});

type Entry = Record<string, unknown>;

async function open(request: object = {}): Promise<string> {
  const { status, body } = await rest("/v1/sessions", request);
  expect(status, JSON.stringify(body)).toBe(201);
  const session = `/v1/sessions/${body.id}`;
  onTestFinished(() => void rest(session, undefined, { method: "DELETE" }));
  return session;
}

const navigate = (session: string, url: string) => rest(`${session}/navigate`, { url });
const destroy = (session: string) => rest(session, undefined, { method: "DELETE" });

/** Reads all pages of a log. */
async function readAll(session: string, limit = 100): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor = ""; ; ) {
    const { status, body } = await rest(`${session}/logs?limit=${limit}${cursor}`);
    expect(status, JSON.stringify(body)).toBe(200);
    entries.push(...body.data);
    if (!body.has_more) return entries;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

const find = (entries: readonly Entry[], fields: Entry): Entry | undefined =>
  entries.find((entry) => Object.entries(fields).every(([name, value]) => entry[name] === value));

/** Waits until a log has an entry with the given fields. */
async function awaitEntry(session: string, fields: Entry): Promise<void> {
  const isThere = async () => find(await readAll(session), fields) !== undefined;
  expect(await waitUntil(isThere, { timeout: 15_000, every: 100 }), JSON.stringify(fields)).toBe(true);
}

/** Opens the busy page and types into it. Resolves when all its requests were recorded. */
async function beBusy(session: string): Promise<void> {
  const query = `item=${canaries.query}#${canaries.fragment}`;
  await navigate(session, `${base.replace("//", `//ada:${canaries.password}@`)}/fine`);
  await navigate(session, `${base}/busy?${query}`);
  await rest(`${session}/interact`, { action: { kind: "type", selector: "#field", text: canaries.typed } });
  await rest(`${session}/navigate`, { url: `${base}/file?item=${canaries.query}` });
  await awaitEntry(session, { type: "request", url: `${base}/missing?item`, http_status: 404 });
  await awaitEntry(session, { type: "request", url: `${base}/missing?typed`, http_status: 404 });
  await awaitEntry(session, { type: "request", url: "http://127.0.0.1:1/refused?item" });
  await awaitEntry(session, { type: "download", file_name: "report.csv", outcome: "finished" });
}

const expectNoCanary = (entries: readonly Entry[], others: readonly string[] = []): void => {
  const text = JSON.stringify(entries);
  for (const canary of [...Object.values(canaries), ...others]) expect(text).not.toContain(canary);
};

test("errors records navigations, failed requests, dialogs and downloads, live and after the end", async () => {
  const session = await open();
  await beBusy(session);
  const live = await readAll(session);
  expect(find(live, { type: "navigation", url: `${base}/busy?item` })).toMatchObject({ http_status: 200 });
  expect(find(live, { type: "dialog" })).toMatchObject({ kind: "alert", outcome: "accepted" });
  expect(find(live, { type: "request", url: `${base}/missing?item` })).toMatchObject({
    method: "POST",
    kind: "Fetch",
    page_id: "page_1",
    duration_ms: expect.any(Number),
  });
  expect(find(live, { url: `${base}/fine?item` })).toBeUndefined();
  expect(live.map(({ type }) => type)).not.toContain("console");
  expectNoCanary(live, [said]);
  expect(await readAll(session, 2)).toEqual(live);
  await destroy(session);
  expect((await readAll(session)).slice(0, live.length)).toEqual(live);
  const other = restClient({ url: service.url, key: await addAccount(service) });
  expect(await other(`${session}/logs`)).toMatchObject({ status: 404 });
});

test("full also records console lines, exceptions and all requests, without values of URLs", async () => {
  const session = await open({ logs: "full" });
  await beBusy(session);
  const line = { type: "console", kind: "log" };
  await awaitEntry(session, line);
  await awaitEntry(session, { type: "request", url: `${base}/fine?item`, http_status: 200 });
  const entries = await readAll(session);
  expect(find(entries, line)?.text).toContain(`${said} ${base}/busy?item`);
  expect(find(entries, { type: "exception" })).toMatchObject({
    text: expect.stringContaining(`Error: ${said} in ${base}/busy?item`),
    url: `${base}/busy?item`,
    position: expect.stringMatching(/^\d+:\d+$/),
  });
  expect(find(entries, { type: "dialog" })?.text).toBe(said);
  expectNoCanary(entries);
});

test("off records nothing", async () => {
  const session = await open({ logs: "off" });
  await navigate(session, `${base}/missing`);
  expect((await rest(`${session}/logs`)).body).toMatchObject({ data: [], level: "off" });
});

test.each([
  ["off", "unnoticed"],
  ["errors", "unnoticed"],
  ["full", "noticed"],
])("a page cannot notice the level %s, unless it reads the console: %s", async (logs, title) => {
  const session = await open({ logs });
  await navigate(session, `${base}/probe`);
  const wait = { condition: { kind: "text", text: "never" }, timeout_ms: 1_000 };
  await rest(`${session}/wait`, wait);
  expect((await rest(`${session}/state`)).body.title).toBe(title);
});

test("a crash of a page is recorded", async () => {
  const session = await open();
  await navigate(session, `${base}/busy?item=${canaries.query}`);
  const client = await BareClient.connect((await rest(`${session}/cdp-url`, {})).body.url);
  onTestFinished(() => client.socket.close());
  client.socket.send(JSON.stringify({ id: 99, method: "Page.crash", sessionId: await client.attach() }));
  await awaitEntry(session, { type: "crash", url: `${base}/busy?item`, page_id: "page_1" });
});

describe("a stream", () => {
  /** Follows a log until its end. */
  async function follow(session: string, headers: Record<string, string> = {}): Promise<Entry[]> {
    const { body } = await rest(`${session}/logs/stream`, undefined, { headers });
    return [...String(body).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
  }

  test("sends existing and new entries until the session has ended, and resumes", async () => {
    const session = await open();
    await navigate(session, `${base}/missing?first=1`);
    const following = follow(session);
    await navigate(session, `${base}/missing?second=1`);
    await awaitEntry(session, { type: "navigation", url: `${base}/missing?second` });
    const live = await readAll(session);
    await destroy(session);
    const streamed = await following;
    expect(streamed.slice(0, live.length)).toEqual(live);
    expect(await follow(session)).toEqual(streamed);
    expect(await follow(session, { "last-event-id": "2" })).toEqual(streamed.slice(2));
  });
});

test("a page that logs without end stays within the bounds, live and stored", async () => {
  const session = await open({ logs: "full" });
  await navigate(session, `${base}/endless`);
  const isFull = async () => (await rest(`${session}/logs?limit=1`)).body.dropped > 1_000;
  expect(await waitUntil(isFull, { timeout: 30_000, every: 200 })).toBe(true);
  await destroy(session);
  const stored = await readAll(session);
  expect(stored.length).toBeLessThanOrEqual(2_000);
  expect(JSON.stringify(stored.map(({ text, url }) => [text, url])).length).toBeLessThan(300_000);
  for (const { text } of stored) expect(String(text ?? "").length).toBeLessThanOrEqual(500);
  const { body } = await rest(`${session}/logs?limit=100`);
  expect(body).toMatchObject({ lost: false, dropped: expect.any(Number) });
  expect(body.dropped).toBeGreaterThan(1_000);
  expect(body.data.length).toBeGreaterThan(10);
});

import { randomBytes } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { StatusService } from "../../src/gen/pilothouse/v1/status_pb.ts";
import { httpRouteOf } from "../../src/kernel/http-route.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { ComponentName, Health } from "../../src/status/components.ts";
import { changeIncident, insertIncident } from "../../src/status/incident-store.ts";
import { admin } from "../support/admin.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { freshEmail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { type TransportName, transportNames } from "../support/transport-calls.ts";

const { get, watch, getSla, subscribe, confirmSubscription, unsubscribe, unsubscribeOneClick } = StatusService.method;

/** Milliseconds, a thirtieth of the default. A fault is shown within a second, its end within two. */
const statusEvery = 300;
const workerToken = "a token of the tests alone";
const pollOptions = { timeout: 60_000, interval: 50 };

// Faults start and end in real time.
vi.setConfig({ testTimeout: 120_000 });

let database: TestDatabase;
let between: PostgresBetween;
let gateway: PeopleGateway;
let worker: FakeWorker;
let browser: Browser;
/** Status before the registration of the first worker. */
let atFirst: Awaited<ReturnType<typeof read>>;

const operator = (...args: readonly string[]) => admin({ DATABASE_URL: database.url }, ...args);

async function startWorker(): Promise<FakeWorker> {
  const port = gateway.app.fleet?.port;
  const started = new FakeWorker({ control: `127.0.0.1:${port}`, token: workerToken });
  await started.start();
  return started;
}

beforeAll(async () => {
  database = await startTestDatabase();
  between = await PostgresBetween.start(database);
  const own = { DATABASE_URL: between.url, SECRETS_KEYS: testSecretsKeys, WORKER_TOKEN: workerToken };
  gateway = await startPeopleGateway({ ...own, HOST: "127.0.0.1" }, { statusEvery });
  browser = await launchPlainBrowser();
  const { updated_at: begun } = await read();
  // Long enough for a fault to be shown.
  const isLater = async () => {
    atFirst = await read();
    return Date.parse(atFirst.updated_at) - Date.parse(begun) > 3 * statusEvery;
  };
  expect(await waitUntil(isLater, { timeout: pollOptions.timeout, every: pollOptions.interval })).toBe(true);
  worker = await startWorker();
  const isWell = async () => (await componentOf("sessions")) === "operational";
  expect(await waitUntil(isWell, { timeout: pollOptions.timeout, every: pollOptions.interval })).toBe(true);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
  await between?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

async function read() {
  // A new address each time, because each has a bucket of 60 tokens.
  const from = `2001:db8:2:${randomBytes(2).toString("hex")}::1`;
  const answer = await fetch(`${gateway.url}/v1/status`, { headers: { "x-forwarded-for": from } });
  expect(answer.status).toBe(200);
  return await answer.json();
}

const componentOf = async (component: string): Promise<string> =>
  (await read()).components.find(({ name }: { name: string }) => name === component)?.status;

test("no sessions component and no incident exist before the first worker registers", () => {
  const { status, incidents, components } = atFirst;
  expect([status, incidents]).toEqual(["operational", []]);
  expect(components.map(({ name }: { name: string }) => name)).not.toContain("sessions");
});

describe.each(transportNames)("over %s", (transport) => {
  test("an anonymous client reads and follows the status", async () => {
    const { answer } = await gateway.call(transport, get, {});
    const words = (status: string): string => status.toLowerCase().replace("health_", "");
    expect(words(answer.status)).toBe("operational");
    expect(answer.components.map(({ name }: { name: string }) => name)).toEqual([
      "api",
      "sessions",
      "agent_sessions",
      "live_view",
      "webhooks",
    ]);
    expect(Date.now() - Date.parse(answer.updated_at)).toBeLessThan(60_000);
    const followed = await gateway.call(transport, watch, {});
    // The REST stream is read below.
    expect(transport === "REST" || JSON.stringify(followed.answer).includes("live_view")).toBe(true);
    const { answer: sla } = await gateway.call(transport, getSla, { months: 2 });
    expect(sla).toMatchObject({ target_percent: 99.9, months: [{ month: new Date().toISOString().slice(0, 7) }] });
  });
});

/** Confirms or ends a subscription. Over REST, follows a link. */
async function byToken(transport: TransportName, method: DescMethod, token: string) {
  if (transport !== "REST") return await gateway.call(transport, method, { token });
  const path = httpRouteOf(method)?.template ?? "";
  const answer = await (await fetch(`${gateway.url}${path}?${new URLSearchParams({ token })}`)).json();
  return { slug: "", answer };
}

/** Reads the messages of the stream of Server-Sent Events. */
async function* follow(signal: AbortSignal) {
  const answer = await fetch(`${gateway.url}/v1/status/stream`, { signal });
  yield* framesOf(answer.body ?? []);
}

async function* framesOf(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
  let text = "";
  for await (const chunk of chunks) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const frame = text.slice(0, end);
      text = text.slice(end + 2);
      if (frame.startsWith("data: ")) yield JSON.parse(frame.slice(6));
    }
  }
}

test("a PostgreSQL outage is shown during and after it", async () => {
  const over = new AbortController();
  const seen = follow(over.signal);
  expect((await seen.next()).value.status).toBe("operational");
  between.isAway = true;
  try {
    const { value: away } = await seen.next();
    expect(away.status).toBe("major_outage");
    await expect.poll(() => componentOf("api"), pollOptions).toBe("major_outage");
    await expect.poll(() => componentOf("sessions"), pollOptions).toBe("major_outage");
    const page = await fetch(`${gateway.url}/status`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("cannot reach its database")]);
  } finally {
    between.isAway = false;
  }
  await expect.poll(async () => (await read()).status, pollOptions).toBe("operational");
  await seen.return(undefined);
  over.abort();
  // A gateway wrote its samples of the outage afterwards.
  const spans = database.db.sql.selectFrom("status_spans").selectAll().where("component", "=", "api");
  expect(await spans.where("health", "=", "major_outage").execute()).not.toEqual([]);
  const { answer } = await gateway.call("REST", getSla, {});
  expect(answer.months[0].uptime_percent).toBeLessThan(100);
});

test("sessions have an outage with an incident while there is no worker", async () => {
  worker.die();
  // The lease of the dead worker would last for 8 s.
  await database.db.sql
    .updateTable("worker_leases")
    .set({ lease_until: new Date(0) })
    .execute();
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("major_outage");
  expect(await componentOf("api")).toBe("operational");
  const { incidents } = await read();
  expect(incidents).toMatchObject([{ title: "Sessions fail to start", components: ["sessions"] }]);
  worker = await startWorker();
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("operational");
  await expect.poll(async () => (await read()).incidents, pollOptions).toEqual([]);
});

test("a worker whose browsers fail to launch is an outage of sessions", async () => {
  const beat = setInterval(() => worker.heartbeat({ launchesFail: true }).catch(() => undefined), 20);
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("major_outage");
  clearInterval(beat);
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("operational");
});

test("maintenance is announced, shown in its time, and then ends", async () => {
  const words = ["--title", "New disks", "--text", "We change disks.", "--components", "live_view,webhooks"];
  await operator("maintenance", ...words, "--until", "30d");
  await expect.poll(() => componentOf("live_view"), pollOptions).toBe("maintenance");
  expect((await read()).status).toBe("maintenance");
  const [incident] = (await read()).incidents;
  expect(incident).toMatchObject({ status: "maintenance", components: ["live_view", "webhooks"] });
  await operator("incident", "close", "--id", incident.id, "--text", "All disks are new.");
  await expect.poll(() => componentOf("live_view"), pollOptions).toBe("operational");
});

test("an operator's incident is shown, and mailed to confirmed subscribers once in 15 minutes", async () => {
  const email = freshEmail();
  const asked = { email, status: "pending" };
  expect((await gateway.call("REST", subscribe, { email })).answer).toEqual(asked);
  const confirming = await gateway.mailbox.next(email);
  const link = new URL(confirming.links.find((each) => each.includes("/status/confirm#")) ?? "");
  // Mail scanners send GET and HEAD to links, which must not confirm.
  for (const method of ["GET", "HEAD"]) expect((await fetch(link, { method })).status).toBe(200);
  const token = link.hash.slice(1);
  const head = await fetch(`${gateway.url}/v1/status/subscribe/confirm?token=${token}`, { method: "HEAD" });
  expect(head.status).toBe(405);
  const opened = ["incident", "open", "--title", "A pool is slow", "--health", "degraded", "--components", "sessions"];
  const id = /inc_\w+/.exec(await operator(...opened, "--text", "We look into it."))?.[0] ?? "";
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("degraded");
  const { incidents } = await read();
  expect(incidents).toMatchObject([{ id, status: "degraded", updates: [{ text: "We look into it." }] }]);
  const told = () =>
    database.db.sql.selectFrom("status_incidents").select("told_at").where("id", "=", id).executeTakeFirst();
  await expect.poll(async () => (await told())?.told_at ?? null, pollOptions).not.toBeNull();
  // A subscription that is confirmed before the e-mails are written receives them.
  const mailings = database.db.sql.selectFrom("status_mailings").select("id");
  await expect.poll(() => mailings.execute(), pollOptions).toEqual([]);
  expect(gateway.mailbox.waiting(email)).toEqual([]);

  for (const transport of transportNames)
    expect(JSON.stringify((await byToken(transport, confirmSubscription, token)).answer)).toMatch(/confirmed"/i);
  await operator("incident", "update", "--id", id, "--text", "It is a disk.", "--health", "partial_outage");
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("partial_outage");
  await operator("incident", "close", "--id", id, "--text", "The disk is new.");
  await expect.poll(() => componentOf("sessions"), pollOptions).toBe("operational");
  expect(gateway.mailbox.waiting(email)).toEqual([]);
  gateway.pass(15 * 60_000);
  let mail = await gateway.mailbox.next(email);
  // The end of an earlier incident is mailed too.
  while (mail.subject !== "Resolved: A pool is slow") mail = await gateway.mailbox.next(email);
  expect(mail.text).toContain("It is a disk.");
  expect(mail.text).toContain("The disk is new.");
  await expect(operator("incident", "close", "--id", id, "--text", "Again.")).rejects.toThrow("that is not over");

  // A mail program's button posts to the address in the header (RFC 8058).
  const headers = mail.parsed.headerLines.map(({ line }) => line.replaceAll(/\r?\n\s+/g, ""));
  expect(headers).toContainEqual("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
  const [, address = ""] = /^List-Unsubscribe: ?<(.*)>$/m.exec(headers.join("\n")) ?? [];
  const oneClick = new URL(address);
  const post = (body: BodyInit) => fetch(gateway.url + oneClick.pathname + oneClick.search, { method: "POST", body });
  expect((await post(new URLSearchParams({ other: "One-Click" }))).status).toBe(400);
  const form = new FormData();
  form.set("List-Unsubscribe", "One-Click");
  for (const body of [new URLSearchParams({ "List-Unsubscribe": "One-Click" }), form]) {
    const answer = await post(body);
    expect([answer.status, await answer.json()]).toEqual([200, { email, status: "unsubscribed" }]);
  }
  const end = { token: new URLSearchParams(oneClick.search).get("token") ?? "" };
  for (const transport of transportNames)
    expect(JSON.stringify((await byToken(transport, unsubscribe, end.token)).answer)).toMatch(/unsubscribed"/i);
  const content = Buffer.from("List-Unsubscribe=One-Click").toString("base64");
  const byRpc = { ...end, form: { content_type: "application/x-www-form-urlencoded", data: content } };
  expect((await gateway.call("Connect", unsubscribeOneClick, byRpc)).answer.email).toBe(email);
  // A used confirmation link does not confirm again.
  expect((await byToken("REST", confirmSubscription, token)).answer.status).toBe("unsubscribed");
  expect((await byToken("Connect", confirmSubscription, "none")).slug).toBe("invalid-auth-token");
  expect((await byToken("REST", unsubscribe, "none")).answer.detail).toMatch(
    /^expected the token of an unsubscribe link: follow/,
  );
});

test("an address receives three confirmation e-mails a day, and responses do not reveal their number", async () => {
  const email = freshEmail();
  for (let count = 0; count < 5; count += 1)
    expect((await gateway.call("REST", subscribe, { email: email.toUpperCase() })).answer.status).toBe("pending");
  for (let count = 0; count < 3; count += 1) await gateway.mailbox.next(email);
  const other = freshEmail();
  await gateway.call("REST", subscribe, { email: other });
  await gateway.mailbox.next(other);
  expect(gateway.mailbox.waiting(email)).toEqual([]);
});

test("delayed deliveries degrade webhooks", async () => {
  const hour = 3_600_000;
  const queue = { kind: "webhook", queue: "whk_none", owner: "acc_none" };
  const due = new Date(gateway.now() + hour);
  await database.db.sql
    .insertInto("job_queues")
    .values({ ...queue, due_at: due, latest_at: due })
    .execute();
  const release = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  // Workers skip locked rows.
  const holding = database.db.transaction(async (tx) => {
    await tx.sql
      .selectFrom("job_queues")
      .selectAll()
      .where("queue", "=", queue.queue)
      .forUpdate()
      .executeTakeFirstOrThrow();
    isHeld.resolve();
    await release.promise;
  });
  await isHeld.promise;
  gateway.pass(hour + 7_000);
  await expect.poll(() => componentOf("webhooks"), pollOptions).toBe("degraded");
  expect(await componentOf("sessions")).toBe("operational");
  release.resolve();
  await holding;
  await expect.poll(() => componentOf("webhooks"), pollOptions).toBe("operational");
});

/** Opens an incident as the operator, and returns a function that closes it. */
async function declare(title: string, component: ComponentName, health: Health, text = "It is slow.") {
  const id = createIds({ now: Date.now }).next("inc");
  const now = new Date();
  const incident = { id, title, health, text, components: [component], origin: "operator", from: now } as const;
  await database.db.transaction(async (tx) => insertIncident(tx, incident, now));
  const end = () =>
    database.db.transaction(async (tx) => changeIncident(tx, id, "It is over.", new Date(), { resolved: true }));
  return { id, end };
}

test("followers over HTTP/2 receive changes, and the stream restarts after all of them have left", async () => {
  for (const title of ["The first", "The second"]) {
    const client = connectHttp2(gateway.url);
    try {
      const frames = framesOf(client.request({ ":path": "/v1/status/stream" }));
      const shows = async (status: string, ...titles: readonly string[]) => {
        for (let shown = ""; shown !== `${status} ${titles}`; ) {
          const { value } = await frames.next();
          shown = `${value.status} ${value.incidents.map((incident: { title: string }) => incident.title)}`;
        }
      };
      await shows("operational");
      const { end } = await declare(title, "webhooks", "degraded");
      await shows("degraded", title);
      await end();
      await shows("operational");
    } finally {
      client.destroy();
    }
  }
});

test("a stream ends at its client's timeout", async () => {
  const headers = { "x-request-timeout-ms": "300" };
  const followed = await (await fetch(`${gateway.url}/v1/status/stream`, { headers })).text();
  expect(followed).toContain("session-timeout");
});

/** Opens the page, and collects its errors and policy violations. */
async function openPage(javaScriptEnabled: boolean): Promise<{ page: Page; faults: string[] }> {
  const context = await browser.newContext({ javaScriptEnabled });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(`${gateway.url}/status`);
  return { page, faults };
}

test("the page shows changes while it is open, and accepts a subscription", async () => {
  const { page, faults } = await openPage(true);
  await page.getByRole("heading", { name: "All systems are operational" }).waitFor();
  await page.getByText("Live.").waitFor();
  const { id, end } = await declare("Pictures stand still", "live_view", "partial_outage", "We look at <b>it</b>.");
  await page.getByRole("heading", { name: "Some parts of the service are down" }).waitFor();
  await page.locator(".component.partial_outage").getByRole("heading", { name: "Live view" }).waitFor();
  await page.locator(`#${id}`).getByText("We look at <b>it</b>.").waitFor();
  expect(await page.title()).toBe("Status: Some parts of the service are down");
  const email = freshEmail();
  await page.getByLabel("E-mail address").fill(email);
  await page.getByRole("button", { name: "Subscribe" }).click();
  await page.locator("#outcome").getByText(`link to confirm the subscription to ${email}`).waitFor();
  await gateway.mailbox.next(email);

  // The same works without scripts.
  const plain = await openPage(false);
  await plain.page.locator(`#${id}`).getByText("We look at <b>it</b>.").waitFor();
  expect(await plain.page.locator(".component").count()).toBe((await read()).components.length);
  for (const bars of await plain.page.locator(".component svg").all())
    expect(await bars.locator("rect").count()).toBe(90);
  const other = freshEmail();
  await plain.page.getByLabel("E-mail address").fill(other);
  await plain.page.getByRole("button", { name: "Subscribe" }).click();
  await plain.page.locator("#outcome").getByText(`link to confirm the subscription to ${other}`).waitFor();
  await gateway.mailbox.next(other);

  await end();
  await page.getByRole("heading", { name: "All systems are operational" }).waitFor();
  expect([...faults, ...plain.faults]).toEqual([]);
  await Promise.all([page.context().close(), plain.page.context().close()]);
});

test("the page shows the last known status during a PostgreSQL outage, with a notice", async () => {
  const { page, faults } = await openPage(true);
  between.isAway = true;
  try {
    await page.getByText("cannot reach its database").waitFor();
    const plain = await openPage(false);
    await plain.page.getByText("cannot reach its database").waitFor();
    for (const bars of await plain.page.locator(".component svg").all())
      expect(await bars.locator("rect").count()).toBe(90);
    await plain.page.context().close();
  } finally {
    between.isAway = false;
  }
  await page.getByRole("heading", { name: "All systems are operational" }).waitFor();
  await page.getByText("cannot reach its database").waitFor({ state: "detached" });
  expect(faults).toEqual([]);
  await page.context().close();
});

test("an address may open a hundred streams", async () => {
  const over = new AbortController();
  const headers = { "x-forwarded-for": "2001:db8:7::1" };
  const open = () => fetch(`${gateway.url}/v1/status/stream`, { signal: over.signal, headers });
  // Keeps references, because an unreferenced response is collected, which ends its stream.
  const followed: Response[] = [];
  while (followed.length < 100) {
    // The bucket of an address has 60 tokens.
    if (followed.length === 50) gateway.pass(60_000);
    followed.push(await open());
  }
  gateway.pass(60_000);
  const refused = await open();
  expect(new Set(followed.map(({ status }) => status))).toEqual(new Set([200]));
  expect(refused.status).toBe(429);
  expect((await refused.json()).detail).toContain("100 open streams");
  over.abort();
  const status = async () => (await fetch(`${gateway.url}/v1/status/stream`, { headers, method: "HEAD" })).status;
  await expect.poll(status, pollOptions).toBe(200);
});

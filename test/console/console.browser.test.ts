import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page, Response } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { colourRules, reviewPage } from "../support/console-review.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { longTest, withLong } from "../support/long-test.ts";
import { goodPassword } from "../support/people.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";

const run = promisify(execFile);
const desktop = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };

/** Pages of the navigation, with a text that each shows when loaded. */
const pages: readonly (readonly [title: string, shown: string | RegExp])[] = [
  ["Home", "Running now"],
  ["Sessions", "Checkout test"],
  ["Agents", "Read the welcome page"],
  ["Recipes", "No recipes yet"],
  ["Profiles", "Checkout test"],
  ["API keys", "nightly checks"],
  ["Webhooks", "/hooks"],
  ["Usage", "sessions:create"],
  ["Team", "ada@example.com"],
  ["Audit log", "api_key.create"],
  ["Billing", "The operator, by agreement"],
  ["Settings", "Names"],
];

let service: Service;
let browser: Browser;
let receiver: Server;
const provider = new LlmProvider();
let context: BrowserContext;
let page: Page;
const faults: string[] = [];
const received: string[] = [];
/** Number of events that the endpoint `/orders` has received. It fails the first one. */
let orders = 0;

/** Records errors of a page. */
function watch(opened: Page): Page {
  opened.on(
    "console",
    (message) => message.type() === "error" && faults.push(`${message.text()} ${message.location().url}`),
  );
  opened.on("pageerror", (error) => faults.push(`${error.message} ${opened.url()}`));
  return opened;
}

beforeAll(async () => {
  receiver = createServer((request, response) => {
    if (request.url === "/many-failures") {
      response.setHeader("content-type", "text/html");
      response.end(Array.from({ length: 230 }, (_, index) => `<img src="/missing/${index}">`).join(""));
    } else if (request.url?.startsWith("/missing/")) {
      response.writeHead(404).end();
    } else if (request.url === "/orders") {
      const isFirst = orders++ === 0;
      response.writeHead(isFirst ? 500 : 200).end(isFirst ? "the database is down" : "saved");
    } else {
      received.push(String(request.headers["x-service-event-type"]));
      response.end("thanks");
    }
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  await provider.start();
  const own = `127.0.0.1:${port}`;
  const env = { WEBHOOK_ALLOW: own, EGRESS_ALLOW: own, WARM_BROWSERS: "0", ...provider.env };
  [service, browser] = await Promise.all([startService(env), launchPlainBrowser()]);
  context = await browser.newContext({ viewport: desktop, reducedMotion: "reduce" });
  page = watch(await context.newPage());
}, 120_000);
afterAll(async () => {
  receiver?.close();
  await provider[Symbol.asyncDispose]();
  await browser?.close();
  await service?.stop();
}, 60_000);

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: typeof name === "string" });
const open = (title: string) => page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();

test("the printed link makes the owner, once", async () => {
  const [link = ""] = /http\S+\/console\/first-run#\S+/.exec(service.output()) ?? [];
  await page.goto(link);
  await page.getByLabel("Your name").fill("Ada Lovelace");
  expect(page.url()).not.toContain("#");
  await page.getByLabel("E-mail address").fill("ada@example.com");
  await page.getByLabel("Password").fill("password12");
  await button("Become the owner").click();
  await page.getByRole("alert").filter({ hasText: "guess" }).waitFor();
  await page.getByLabel("Password").fill(goodPassword);
  await button("Become the owner").click();
  await page.getByRole("heading", { name: "Hello, Ada" }).waitFor();
  // The refused password is an error of the console.
  faults.length = 0;

  const other = await context.newPage();
  await other.goto(link);
  await other.getByLabel("Your name").fill("Eve");
  await other.getByLabel("E-mail address").fill("eve@example.com");
  await other.getByLabel("Password").fill(goodPassword);
  await other.getByRole("button", { name: "Become the owner" }).click();
  await other.getByRole("alert").filter({ hasText: "has an owner" }).waitFor();
  await other.close();
}, 60_000);

test("the first page has at most 250 kB of compressed files", async () => {
  await page.goto(`${new URL(page.url()).origin}/console/`);
  await page.getByRole("heading", { name: "Hello, Ada" }).waitFor();
  await page.getByText("No running browsers").waitFor();
  const loaded: string[] = await page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)");
  const files = new Set(
    loaded.filter((name) => name.includes("/console/assets/")).map((name) => new URL(name).pathname),
  );
  const sizes = [...files].map((path) => statSync(`dist${path}.gz`).size);
  expect(files.size).toBeGreaterThan(3);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(250_000);
  expect([...files].filter((path) => path.includes("playground"))).toEqual([]);
  await button("New session").click();
  await page.getByRole("dialog", { name: "New session" }).waitFor();
  await page.keyboard.press("Escape");
}, 60_000);

test("a person starts a session, watches it and takes control", async () => {
  await open("Sessions");
  await page.getByText("No sessions yet").waitFor();
  await button("New session").first().click();
  await page.getByLabel("Name").fill("Checkout test");
  await button("Use the demo page").click();
  await page.getByLabel("Profile").selectOption("New profile");
  await button("More options").click();
  await page.getByLabel("Device").fill("ipad");
  expect(await page.locator("datalist option[label$=', tablet']").count()).toBeGreaterThan(10);
  await page.getByLabel("Device").fill("no such device");
  await page.getByText("No device has this name or kind").waitFor();
  expect(await button("Start").isDisabled()).toBe(true);
  await page.getByLabel("Device").fill("Phone");
  await page.getByText("iphone-15, a phone").waitFor();
  await page.getByLabel("Device").fill("");
  await page.getByLabel("Minutes").fill("15");
  await page.getByLabel("Locale").fill("not a locale");
  await button("Start").click();
  await page.getByRole("alert").filter({ hasText: "locale" }).waitFor();
  // The profile of the refused session does not remain.
  await expect.poll(async () => (await restClient(service)("/v1/profiles")).body.data).toEqual([]);
  await page.getByLabel("Locale").fill("");
  await button("Start").click();
  const live = page.frameLocator("iframe");
  await live.locator("canvas[data-sequence]").waitFor();
  await live.getByRole("button", { name: "Take control" }).click();
  await live.locator("#control-status").getByText("You have control").waitFor();
  await page.getByText("Pilothouse demo").waitFor();
  await button("Refresh").click();
  await page.getByRole("main").getByText("A person has control").waitFor();
  expect(await reviewPage(page, "session-desktop")).toEqual([]);
  await page.getByRole("tab", { name: "Connect" }).click();
  await button("Show the address and code").click();
  await page.getByText("chromium.connectOverCDP").waitFor();
  await page.getByRole("tab", { name: "Capture" }).click();
  await button("Screenshot").click();
  await page.getByRole("img", { name: "The captured page" }).waitFor();
}, 60_000);

test("a session's page shows its events as they happen, and its log", async () => {
  const rest = restClient(service);
  const [, demo = ""] = /\{"url":"(http[^"]+)"\}/.exec(service.output()) ?? [];
  const navigate = () => rest(`/v1/sessions/${page.url().split("/").at(-1)}/navigate`, { url: demo });
  await page.getByRole("tab", { name: "Events" }).click();
  const events = page.getByRole("list", { name: "Events" });
  await page.frameLocator("iframe").getByRole("button", { name: "Hand back" }).click();
  // The stream opens after the tab.
  await expect
    .poll(async () => (await navigate()).status === 200 && (await events.getByText("page_navigated").count()) > 0)
    .toBe(true);
  expect(await reviewPage(page, "session-events-desktop")).toEqual([]);

  await page.getByRole("tab", { name: "Log" }).click();
  const entries = page.getByRole("list", { name: "Log entries" }).getByText("navigation");
  await entries.first().waitFor();
  const before = await entries.count();
  await navigate();
  expect(await entries.count()).toBe(before);
  await button("Refresh").click();
  await expect.poll(() => entries.count()).toBe(before + 1);
  for (const [name, size] of [
    ["desktop", desktop],
    ["phone", phone],
  ] as const) {
    await page.setViewportSize(size);
    await entries.last().scrollIntoViewIfNeeded();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await reviewPage(page, `session-log-${name}-${colorScheme}`)).toEqual([]);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(desktop);
}, 60_000);

longTest(
  "a long log has only the entries near the screen in the document",
  async () => {
    const { port } = receiver.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/many-failures`;
    const { status } = await restClient(service)(`/v1/sessions/${page.url().split("/").at(-1)}/navigate`, { url });
    expect(status).toBe(200);
    await button("Refresh").click();
    const entries = page.getByRole("list", { name: "Log entries" }).getByRole("listitem");
    for (const size of [200, 230]) {
      await button("Show newer entries").click();
      await expect
        .poll(async () => Number(await entries.first().getAttribute("aria-setsize")))
        .toBeGreaterThanOrEqual(size);
    }
    const total = (await entries.first().getAttribute("aria-setsize")) ?? "";
    expect(await entries.count()).toBeLessThan(100);
    // The heights of entries are estimates until they are shown.
    await expect
      .poll(async () => {
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
        return entries.last().getAttribute("aria-posinset");
      })
      .toBe(total);
    expect(await entries.count()).toBeLessThan(100);
    expect(await entries.last().isVisible()).toBe(true);
  },
  60_000,
);

longTest(
  "the strip of tabs scrolls to the open tab on phones",
  async () => {
    await page.setViewportSize(phone);
    for (const [name, isRight] of [
      ["State", false],
      ["Log", true],
    ] as const) {
      const tab = page.getByRole("tab", { name });
      // A click by Playwright would itself scroll to the tab.
      await tab.dispatchEvent("mousedown", { button: 0 });
      const leftEdge = async () => (await tab.boundingBox())?.x ?? Number.NaN;
      await expect.poll(async () => (await leftEdge()) > 0 && (await leftEdge()) < phone.width - 40).toBe(true);
      expect((await leftEdge()) > phone.width / 2).toBe(isRight);
    }
    await page.setViewportSize(desktop);
  },
  60_000,
);

longTest(
  "a person extends a session",
  async () => {
    const path = `/v1/sessions/${page.url().split("/").at(-1)}`;
    const read = async () => Date.parse((await restClient(service)(path)).body.expires_at);
    const before = await read();
    await button("Extend").click();
    await page.getByLabel("Longer by").selectOption("10 min");
    expect(await reviewPage(page, "extend-desktop")).toEqual([]);
    await button("Extend the session").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // A lifetime is a whole number of seconds, rounded up.
    expect([600, 601]).toContain(Math.round(((await read()) - before) / 1_000));
  },
  60_000,
);

longTest(
  "the playground runs actions, and its code does the same",
  async () => {
    const session = page.url();
    const [, demo = ""] = /\{"url":"(http[^"]+)"\}/.exec(service.output()) ?? [];
    await page.getByRole("link", { name: "Playground" }).click();
    const form = page.getByRole("form", { name: "Request" });
    const response = page.getByRole("region", { name: "the response" });
    await form.getByLabel("url").fill(demo);
    await button("Run").click();
    await response.getByText('"http_status": 200').waitFor();

    const actions = form.getByLabel("Action", { exact: true });
    await actions.selectOption("Fill");
    await form.getByLabel("selector").fill("#name");
    await form.getByLabel("text").fill("Grace O'Malley");
    await page.getByRole("region", { name: "curl code" }).getByText("O'\\''Malley").waitFor();
    const curl = (await page.getByRole("region", { name: "curl code" }).textContent()) ?? "";
    const { stdout } = await run("sh", ["-c", curl], { env: { ...process.env, PILOTHOUSE_API_KEY: service.key } });
    expect(JSON.parse(stdout)).toMatchObject({ done: 1 });
    await page.getByRole("tab", { name: "TypeScript" }).click();
    await page.getByText('session.fill("#name", "Grace O\'Malley")').waitFor();
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByText('session.fill("#name", "Grace O\'Malley")').waitFor();

    await actions.selectOption("Tap");
    await form.getByLabel("selector").fill("#none");
    await form.getByText("More options").click();
    await form.getByLabel("timeout_ms").fill("100");
    await button("Run").click();
    await form.getByRole("alert").filter({ hasText: "#none" }).waitFor();
    expect(await reviewPage(page, "playground-problem-desktop")).toEqual([]);
    await form.getByLabel("selector").fill("#go");
    await form.getByLabel("timeout_ms").fill("");
    await form.getByLabel("observe").check();
    await button("Run").click();
    await page.getByRole("region", { name: "snapshot" }).getByText("Grace O'Malley").waitFor();

    await actions.selectOption("Screenshot");
    await button("Run").click();
    await page.getByRole("img", { name: "The page in data" }).waitFor();
    for (const [name, size] of [
      ["desktop", desktop],
      ["phone", phone],
    ] as const) {
      await page.setViewportSize(size);
      expect(await reviewPage(page, `playground-${name}-light`)).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await reviewPage(page, `playground-${name}-dark`, colourRules)).toEqual([]);
      await page.emulateMedia({ colorScheme: "light" });
    }
    await actions.selectOption("Drag");
    expect(await reviewPage(page, "playground-drag-phone")).toEqual([]);
    await page.setViewportSize(desktop);
    await page.goto(session);
  },
  90_000,
);

test("a profile that was just created is chosen for its session", async () => {
  await open("Profiles");
  await button("New profile").click();
  await page.getByLabel("Name").fill("Shop login");
  await button("Create").click();
  await page.getByRole("row").filter({ hasText: "Shop login" }).getByRole("button", { name: "Use" }).click();
  const profile = page.getByRole("dialog").getByLabel("Profile");
  await profile.locator("option:checked", { hasText: "Shop login" }).waitFor({ state: "attached" });
  await button("Cancel").click();
}, 60_000);

test("a person creates an API key that works", async () => {
  await open("API keys");
  await button("New key").first().click();
  await page.getByLabel("Name").fill("nightly checks");
  await page.getByRole("radio", { name: "Read only" }).click();
  await button("Create the key").click();
  const key = (await page.getByRole("dialog").locator("code").textContent()) ?? "";
  await button("Done").click();
  await page.getByRole("row").filter({ hasText: "nightly checks" }).getByText("Read only").waitFor();
  const rest = restClient({ url: service.url, key });
  expect(await rest("/v1/sessions")).toMatchObject({ status: 200 });
  expect(await rest("/v1/sessions", {})).toMatchObject({ status: 403 });
}, 60_000);

test("a test event reaches an endpoint, and its answer is shown", async () => {
  const { port } = receiver.address() as AddressInfo;
  await open("Webhooks");
  await button("New endpoint").first().click();
  await page.getByLabel("Address").fill(`http://127.0.0.1:${port}/hooks`);
  await button("Create the endpoint").click();
  await page.getByText("whsec_").waitFor();
  await button("Done").click();
  await page.getByRole("link", { name: "/hooks" }).click();
  await button("Send a test").click();
  await page.getByRole("table", { name: "Deliveries" }).getByText("Delivered").waitFor();
  await button("test.ping").click();
  await page.getByRole("dialog").getByText("thanks").waitFor();
  expect(await reviewPage(page, "delivery-desktop")).toEqual([]);
  await button("Send another test").click();
  await expect.poll(() => received).toEqual(["test.ping", "test.ping"]);
}, 60_000);

test("a delivery that failed shows the reason in words", async () => {
  await open("Webhooks");
  await button("New endpoint").first().click();
  await page.getByLabel("Address").fill("ftp://hooks.invalid/events");
  await button("Create the endpoint").click();
  await page.getByRole("alert").getByText("Correct the marked field.").waitFor();
  await page.getByLabel("Address").fill("https://hooks.invalid/events");
  await button("Create the endpoint").click();
  await button("Done").click();
  await page.getByRole("link", { name: "hooks.invalid" }).click();
  await button("Send a test").click();
  await page.getByRole("table", { name: "Deliveries" }).getByText("The host name does not exist").waitFor();
  await page.getByText("0 given up (tests are not counted)").waitFor();
  await button("Delete").click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Webhooks" }).waitFor();
}, 60_000);

test("a person finds why a delivery failed, and sends it again in four clicks", async () => {
  const rest = restClient(service);
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/orders`;
  const { body: endpoint } = await rest("/v1/webhooks", { url, events: ["session.completed"] });
  const { body: session } = await rest("/v1/sessions", {});
  await rest(`/v1/sessions/${session.id}`, undefined, { method: "DELETE" });
  await open("Webhooks");
  await page.getByRole("row").filter({ hasText: "/orders" }).getByText("1 failing").waitFor();
  await page.getByRole("link", { name: "/orders" }).click();
  const row = (status: string) => page.getByRole("table", { name: "Deliveries" }).getByRole("row", { name: status });
  await row("Retrying 500").getByRole("button", { name: "session.completed" }).click();
  const attempt = page.getByRole("dialog").getByRole("listitem").filter({ hasText: "HTTP 500" });
  await attempt.getByText("the database is down").waitFor();
  await button("Send again").click();
  await row("Delivered 200").waitFor();
  await row("Sent again 500").waitFor();
  await page.getByText("Active", { exact: true }).waitFor();
  await page.getByText("1 delivered, 0 pending, 0 retrying, 0 given up").waitFor();
  expect(await button("Send all failed again").count()).toBe(0);
  expect(orders).toBe(2);
  await rest(`/v1/webhooks/${endpoint.id}`, undefined, { method: "DELETE" });
}, 60_000);

test("an agent does a task beside the live view, with its result as a table", async () => {
  await open("Agents");
  await page.getByText("Agents need a model").waitFor();
  expect(await reviewPage(page, "agents-without-a-model-desktop")).toEqual([]);
  await button("Add an LLM key").first().click();
  await page.getByLabel("Provider").selectOption("OpenAI-compatible");
  await page.getByLabel("Key", { exact: true }).fill(provider.key);
  await page.getByLabel("Model").fill("scripted-1");
  await page.getByLabel("Address").fill(`${provider.origin}/v1`);
  await button("Save the key").click();
  await page.getByRole("dialog", { name: "New agent" }).waitFor();
  await page.keyboard.press("Escape");
  await open("Settings");
  await page.getByRole("tab", { name: "Models" }).click();
  await button("Test").click();
  await page.getByText("Works").waitFor();

  const [, demo] = /\{"url":"(http[^"]+)"\}/.exec(service.output()) ?? [];
  const result = { text: "The page welcomes everyone aboard.", result: { rows: [{ port: "Oslo", ship: "Aurora" }] } };
  provider.say({ calls: [{ name: "navigate", input: { url: demo } }] }, { calls: [{ name: "done", input: result }] });
  await open("Agents");
  await button("New agent").first().click();
  await page.getByLabel("Task").fill("Read the welcome page");
  await page.getByLabel("Columns of the result").fill("ship, port");
  await button("Start").click();
  const log = page.getByRole("log", { name: "Messages and steps" });
  await log.getByText("The page welcomes everyone aboard.").waitFor();
  await log.getByRole("cell", { name: "Aurora" }).waitFor();
  await log.getByText("navigate").click();
  await log.getByRole("img", { name: "The page before this step" }).waitFor();
  await page.frameLocator("iframe").locator("canvas[data-sequence]").waitFor();
  expect(await reviewPage(page, "agent-desktop")).toEqual([]);
  await button("End").click();
  await button("End the agent").click();
  await page.getByText("The browser has ended").waitFor();
  await page.reload();
  await page.getByText("The browser has ended").waitFor();
  await log.getByRole("row", { name: "Aurora Oslo" }).waitFor();
}, 60_000);

const reviewed = [
  ["desktop, in both schemes", "desktop", desktop],
  ["phone", "phone", phone],
] as const;
test.each(withLong([], reviewed))(
  "all pages are accessible and fit on %s",
  async (_screen, name, size) => {
    await page.setViewportSize(size);
    const found: string[] = [];
    for (const [title, shown] of pages) {
      if (size === phone) await button("Open the navigation").click();
      await open(title);
      await page.getByRole("main").getByText(shown).first().waitFor();
      const view = `${title.replaceAll(" ", "-").toLowerCase()}-${name}`;
      await page.emulateMedia({ colorScheme: "light" });
      found.push(...(await reviewPage(page, `${view}-light`)));
      // On phones only the frame around the pages has colours of its own.
      if (size === phone && title !== "Home" && process.env.PICTURES === undefined) continue;
      await page.emulateMedia({ colorScheme: "dark" });
      found.push(...(await reviewPage(page, `${view}-dark`, colourRules)));
    }
    await page.setViewportSize(desktop);
    expect(found).toEqual([]);
  },
  90_000,
);

test("a session of a program appears on the home page, which sends no requests while nothing changes", async () => {
  const tab = watch(await context.newPage());
  // The clock of this browser is behind that of the service.
  await tab.clock.install({ time: Date.now() - 300_000 });
  const requests: string[] = [];
  // Pictures have blob: URLs, which cause no requests to the service.
  tab.on("request", (request) => request.url().startsWith("http") && requests.push(new URL(request.url()).pathname));
  await tab.goto(`${new URL(page.url()).origin}/console/`);
  const running = tab.getByRole("main").getByRole("listitem");
  await running.filter({ hasText: "Checkout test" }).locator("img").waitFor();
  // Each query is read at the start and by the resync.
  const reads = ["AccountService/GetMe", "ApiKeyService/List", "SessionService/List"];
  await expect
    .poll(() => requests.filter((path) => reads.includes(path.split(".v1.")[1] ?? "")).sort())
    .toEqual(reads.flatMap((read) => [`/pilothouse.v1.${read}`, `/pilothouse.v1.${read}`]));
  requests.length = 0;
  await tab.clock.fastForward(60_000);
  // A request that a timer had started would be before this one.
  await tab.evaluate("fetch('/console/').then(() => undefined)");
  expect(requests).toEqual(["/console/"]);

  const rest = restClient(service);
  const { body } = await rest("/v1/sessions", { labels: { name: "From a program" } });
  await running.filter({ hasText: "From a program" }).getByText("just now").waitFor();
  await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
  await running.filter({ hasText: "From a program" }).waitFor({ state: "detached" });

  await tab.getByRole("navigation").getByRole("link", { name: "Sessions", exact: true }).click();
  const row = tab.getByRole("row").filter({ hasText: "Checkout test" });
  await row.locator("img").waitFor();
  const closed = tab.waitForEvent("requestfailed", (request) => request.url().endsWith("/WatchThumbnails"));
  await tab.evaluate(
    "Object.defineProperty(document, 'hidden', { value: true }); document.dispatchEvent(new Event('visibilitychange'))",
  );
  await closed;
  await tab.close();
}, 60_000);

longTest(
  "a person pays by card, gets the receipt and changes the plan",
  async () => {
    const price = page.getByRole("definition").filter({ hasText: "$19 a month" });
    await open("Billing");
    await page.getByText("The operator, by agreement").waitFor();
    expect(await page.getByText("$0").count()).toBe(0);
    await page.getByRole("listitem").filter({ hasText: "API Scale" }).getByText("$499 a month").waitFor();
    await button("Pay by card").first().click();
    await button(/^Pay/).first().click();
    await page.getByRole("link", { name: "Back to the service" }).click();
    await page.goto(`${new URL(page.url()).origin}/console/billing`);
    await price.waitFor();
    await button("Change plan").first().click();
    await page.getByText(/^Receipt .*19\.00 USD/).waitFor();
    await button("Change to a higher tier, and pay the difference now").click();
    await page.getByRole("link", { name: "Back to the service" }).click();
    await price.waitFor({ state: "detached" });
    await page.getByRole("listitem").filter({ hasText: "API Builder" }).getByText("Paid").waitFor();
  },
  60_000,
);

test("the command palette opens pages and pasted ids", async () => {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page or id" }).fill("audit");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Audit log" }).waitFor();
  const [session] = (await restClient(service)("/v1/sessions?status=live")).body.data;
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page or id" }).fill(session.id);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Checkout test" }).waitFor();
}, 60_000);

test("the page of a session that ends lists its files, and sends no request that is refused", async () => {
  await page.getByText("Nobody is in control").waitFor();
  const rest = restClient(service);
  const file = `/v1/sessions/${page.url().split("/").at(-1)}/files/report.csv`;
  expect((await rest(file, { ship: "Aurora" }, { method: "PUT" })).status).toBe(201);
  const refused: string[] = [];
  const record = (response: Response) => void (response.ok() || refused.push(response.url()));
  page.on("response", record);
  await button("End").click();
  await button("End the session").click();
  await page.getByText("ended by its owner").waitFor();
  await page.getByRole("list", { name: "Log entries" }).waitFor();
  await page.getByRole("row", { name: "report.csv 17 B Uploaded" }).waitFor();
  page.off("response", record);
  expect(refused).toEqual([]);
  expect(await reviewPage(page, "ended-session-desktop")).toEqual([]);

  const { body } = await rest("/v1/sessions", { logs: "off" });
  await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
  await page.goto(`${new URL(page.url()).origin}/console/sessions/${body.id}`);
  await page.getByText("This session keeps no log").waitFor();
  expect(
    await page
      .getByText("report.csv")
      .or(page.getByRole("heading", { name: "Files" }))
      .count(),
  ).toBe(0);
}, 60_000);

test("a person ends all sessions", async () => {
  const rest = restClient(service);
  await rest("/v1/sessions", {});
  const { body } = await rest("/v1/sessions", {});
  await rest("/v1/sessions", {});
  await open("Sessions");
  await button("End all").click();
  // The second of three sessions ends before the page ends it.
  const endOne = () => rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
  await page.route("**/*.SessionService/Destroy", (route) => endOne().then(() => route.continue()), { times: 1 });
  await button("End all sessions").click();
  await page.getByRole("alertdialog").waitFor({ state: "detached" });
  await button("End all").waitFor({ state: "detached" });
  expect((await rest("/v1/sessions?status=live")).body.data).toEqual([]);
}, 60_000);

/** Returns the link of the newest e-mail of a kind in the outbox. */
async function mailLink(kind: string): Promise<string> {
  const [outbox = ""] = /http\S+\/dev\/mail\?key=\S+/.exec(service.output()) ?? [];
  const find = async (): Promise<string | undefined> => {
    const { mails } = await (await fetch(outbox)).json();
    const links: string[] = mails.flatMap((mail: { links: string[] }) => mail.links);
    return links.find((link) => link.includes(`/auth/${kind}#`));
  };
  await expect.poll(find).toBeTruthy();
  return (await find()) ?? "";
}

longTest(
  "an invited person joins by the e-mail, verifies the address and logs in",
  async () => {
    await open("Team");
    await button("Invite").click();
    await page.getByLabel("E-mail address").fill("grace@example.com");
    await button("Send the invite").click();
    const visitor = await browser.newContext();
    const theirs = watch(await visitor.newPage());
    await theirs.goto(await mailLink("invite"));
    await theirs.getByLabel("Your name").fill("Grace");
    await theirs.getByLabel("E-mail address").fill("grace@example.com");
    await theirs.getByLabel("Password").fill(goodPassword);
    expect(await reviewPage(theirs, "invite-desktop")).toEqual([]);
    await theirs.getByRole("button", { name: "Sign up and join" }).click();
    await theirs.getByText("We have sent an e-mail to grace@example.com").waitFor();
    await theirs.goto(await mailLink("verify-email"));
    await theirs.getByRole("button", { name: "Verify the address" }).click();
    await theirs.getByRole("link", { name: "Log in" }).click();
    await theirs.getByLabel("E-mail address").fill("grace@example.com");
    await theirs.getByLabel("Password").fill(goodPassword);
    expect(await reviewPage(theirs, "login-desktop")).toEqual([]);
    await theirs.getByRole("button", { name: "Log in", exact: true }).click();
    await theirs.getByRole("heading", { name: "Hello, Grace" }).waitFor();
    await visitor.close();
  },
  60_000,
);

longTest(
  "long names fit on phones",
  async () => {
    const rest = restClient(service);
    const name = "The nightly check of all prices in the shop of the harbour";
    const { body } = await rest("/v1/sessions", { labels: { name } });
    await page.setViewportSize(phone);
    for (const [title, shown] of [
      ["Home", name],
      ["Sessions", name],
      ["Team", "grace@example.com"],
    ] as const) {
      await button("Open the navigation").click();
      await open(title);
      await page.getByRole("main").getByText(shown).first().waitFor();
      expect(await reviewPage(page, `${title.toLowerCase()}-long-names-phone`)).toEqual([]);
    }
    await page.setViewportSize(desktop);
    await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
  },
  60_000,
);

longTest(
  "five tabs wake after the expiry, and the login continues in all",
  async () => {
    const tabs = await Promise.all(Array.from({ length: 5 }, () => context.newPage()));
    for (const tab of tabs) {
      await tab.clock.install();
      await tab.goto(`${new URL(page.url()).origin}/console/`);
      await tab.getByRole("heading", { name: "Hello, Ada" }).waitFor();
    }
    await Promise.all(tabs.map((tab) => tab.clock.fastForward(16 * 60_000)));
    for (const tab of tabs) {
      await tab.getByRole("navigation").getByRole("link", { name: "Team" }).click();
      await tab.getByText("grace@example.com").waitFor();
    }
    await Promise.all(tabs.map((tab) => tab.close()));
    await page.reload();
    await page.getByRole("heading", { name: "Team" }).waitFor();
  },
  60_000,
);

test("logging out ends the login in all tabs", async () => {
  await page
    .getByRole("button", { name: "ada@example.com" })
    .or(button(/Ada Lovelace/))
    .click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  // The browser reports refusals, such as that of an ended session, as errors of loading.
  expect(faults.filter((fault) => !fault.startsWith("Failed to load resource"))).toEqual([]);
}, 60_000);

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium, type Locator, type Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import type { HostileDriver } from "../support/hostile-runner.ts";
import { frameHtml, type MotleyCommand, motleyPage } from "../support/motley-pages.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const pages = 20;
const commandsOfPage = 50;

/** Timeouts of commands that succeed and that fail. The latter allows a busy machine to find the reason. */
const timeoutMs = 10_000;
const doomedMs = 1_000;

/** Milliseconds for a page to show the effect of a command. */
const settleMs = 3_000;

/** Result of a command, `done` or the hindrance, and the page's title afterwards. */
interface Outcome {
  readonly kind: string;
  readonly title: string;
}

/** A page's title: the number of events and the last one. */
interface SeenTitle {
  readonly events: number;
  readonly last: string;
}

/** An accepted difference between two results of the same kind. */
interface Accepted {
  readonly widget: string;
  readonly why: string;
  isIt(ours: SeenTitle, theirs: SeenTitle, command: MotleyCommand): boolean;
}

const accepted: readonly Accepted[] = [
  {
    widget: "labelled",
    isIt: (ours, theirs) => ours.last === theirs.last,
    why: "we hit a label in the middle of its line, Playwright in that of its first part, which is the box: the page sees a click of the label more",
  },
  {
    widget: "virtual",
    isIt: isTheirsLost,
    why: "Playwright scrolls, and presses a row that the list draws anew before the release: its page sees no click, ours does",
  },
  {
    widget: "entering",
    isIt: isTheirsLost,
    why: "Playwright presses what has not moved for two frames, though its animation has yet to begin on a busy machine: as above",
  },
];

/** True if only our page has received the intended click. */
function isTheirsLost(ours: SeenTitle, theirs: SeenTitle, { selector }: MotleyCommand): boolean {
  return ours.events === theirs.events + 1 && ours.last === `click ${selector.slice(1)}`;
}

let server: Server;
let worker: WorkerUnderTest;
let session: DrivenSession;
let driver: HostileDriver;
let browser: Browser;
let page: Page;
let host: string;
let html = "";

beforeAll(async () => {
  server = createServer(({ url = "/" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://motley");
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(pathname === "/frame" ? frameHtml(searchParams.get("id") ?? "") : html);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  host = `127.0.0.1:${port}`;
  worker = await WorkerUnderTest.start([host, `localhost:${port}`]);
  session = await worker.open();
  driver = workerDriver(session);
  const found = findBrowsers({
    env: process.env,
    dataDirectory: "/nonexistent",
    platform: process.platform,
    disk: realDisk,
  });
  const executablePath = found["headless-shell"];
  if (executablePath === undefined) throw new Error("there is no headless shell");
  browser = await chromium.launch({ executablePath, chromiumSandbox: false });
  page = await browser.newPage();
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await session?.destroy();
  await worker?.stop();
  server?.close();
});

test("behaves as Playwright does for a thousand commands", { timeout: 25 * 60_000 }, async () => {
  const differences: string[] = [];
  for (let seed = 1; seed <= pages; seed += 1) {
    const motley = motleyPage(seed, commandsOfPage, `http://${host.replace("127.0.0.1", "localhost")}`);
    html = motley.html;
    await load();
    for (const [at, command] of motley.commands.entries()) {
      const [ours, theirs] = await bothDo(command);
      if (ours.kind === theirs.kind && ours.title === theirs.title) continue;
      if (!isAccepted(command, ours, theirs)) {
        differences.push(`page ${seed}, command ${at}: ${JSON.stringify({ command, ours, theirs })}`);
      }
      // Reload, because the difference between the pages would affect later commands.
      await load();
    }
  }
  expect(differences).toEqual([]);
});

async function load(): Promise<void> {
  const url = `http://${host}/`;
  await Promise.all([driver.run("navigate", { url }), page.goto(url)]);
}

async function bothDo(command: MotleyCommand): Promise<[ours: Outcome, theirs: Outcome]> {
  const [ours, theirs] = await Promise.all([ourKind(command), theirKind(command)]);
  const endsAt = performance.now() + settleMs;
  for (;;) {
    const [{ title }, theirTitle] = await Promise.all([session.state(), page.title()]);
    if (title === theirTitle || performance.now() > endsAt) {
      return [
        { kind: ours, title },
        { kind: theirs, title: theirTitle },
      ];
    }
    await delay(20);
  }
}

function isAccepted(command: MotleyCommand, ours: Outcome, theirs: Outcome): boolean {
  if (ours.kind !== theirs.kind) return false;
  const { isIt } = accepted.find(({ widget }) => widget === command.widget) ?? {};
  return isIt?.(readTitle(ours), readTitle(theirs), command) ?? false;
}

function readTitle({ title }: Outcome): SeenTitle {
  return { events: Number.parseInt(title, 10), last: title.replace(/^\d+ /, "") };
}

/** Repeats a command when a busy page has not reported the hindrance. */
async function ourKind(command: MotleyCommand): Promise<string> {
  for (let left = 3; ; left -= 1) {
    const detail = await ourProblem(command);
    if (detail === undefined) return "done";
    if (left === 0 || !detail.includes("did not answer within")) return hindranceIn(detail);
  }
}

/** The hindrance of a command in words; undefined when it succeeds. */
async function ourProblem({ kind, selector, frame, values, isDoomed }: MotleyCommand): Promise<string | undefined> {
  const timeout_ms = isDoomed ? doomedMs : timeoutMs;
  const aim = { selector, ...(frame && { frame }) };
  const more = { select: { values }, scroll: { dx: 0, dy: 90 }, tap: {}, hover: {}, wait: {} }[kind];
  const { problem } =
    kind === "wait"
      ? await driver.run("wait", { condition: { kind: "selector", ...aim }, timeout_ms })
      : await driver.run("interact", { action: { kind, ...aim, ...more }, timeout_ms });
  return problem?.detail;
}

async function theirKind(command: MotleyCommand): Promise<string> {
  const timeout = command.isDoomed ? doomedMs : timeoutMs;
  try {
    await theyDo(command, locate(command), timeout);
    return "done";
  } catch (thrown) {
    return hindranceIn(String(thrown));
  }
}

async function theyDo({ kind, values = [] }: MotleyCommand, element: Locator, timeout: number): Promise<unknown> {
  switch (kind) {
    case "tap":
      return element.click({ timeout });
    case "hover":
      return element.hover({ timeout });
    case "select":
      return element.selectOption([...values], { timeout });
    case "scroll":
      return element.evaluate((box) => box.scrollBy(0, 90), undefined, { timeout });
    case "wait":
      return element.waitFor({ state: "attached", timeout });
  }
}

function locate({ selector, frame = [] }: MotleyCommand): Locator {
  let place: Page | ReturnType<Page["frameLocator"]> = page;
  for (const outer of frame) place = place.frameLocator(outer);
  return place.locator(`css=${selector}`).filter({ visible: true }).first();
}

/** The hindrance in one word, from the last match in Playwright's log. */
function hindranceIn(words: string): string {
  const last = [
    ...words.matchAll(/covered by|intercepts pointer|disabled|not enabled|keeps moving|not stable|options/g),
  ].at(-1)?.[0];
  const names: Readonly<Record<string, string>> = {
    "covered by": "covered",
    "intercepts pointer": "covered",
    disabled: "disabled",
    "not enabled": "disabled",
    "keeps moving": "moving",
    "not stable": "moving",
    options: "options",
  };
  // Playwright looks only for visible elements here, and does not distinguish hidden from missing ones.
  return names[last ?? ""] ?? "not seen";
}

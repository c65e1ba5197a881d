import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import type { HostileDriver } from "../support/hostile-runner.ts";
import { frameHtml, type MotleyCommand, motleyPage } from "../support/motley-pages.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const pages = 20;
const commandsOfPage = 50;

/** How long a command may take, and one that is not to succeed: long enough for a busy machine to see why. */
const timeoutMs = 10_000;
const doomedMs = 1_000;

/** How long a page may take to show what a command has done to it. */
const settleMs = 3_000;

/** What became of a command: `done`, or what was in its way; and the page's title behind it. */
interface Outcome {
  readonly kind: string;
  readonly title: string;
}

/** A page's title: how many events it has had, and what the last one was. */
interface SeenTitle {
  readonly events: number;
  readonly last: string;
}

/** A difference that is as it should be, where both have come to the same kind of end. */
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

/** Whether our page has seen the click that is meant, and Playwright's has not. */
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
      // What the one page has seen and the other has not would tell of itself again and again.
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

/** A machine that is busy may leave the page no time to say what is in the way: then it is asked again. */
async function ourKind(command: MotleyCommand): Promise<string> {
  for (let left = 3; ; left -= 1) {
    const detail = await ourProblem(command);
    if (detail === undefined) return "done";
    if (left === 0 || !detail.includes("did not answer within")) return hindranceIn(detail);
  }
}

/** What was in the way of a command, in words; undefined when it is done. */
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

/** What was in the way, in a word; of Playwright's log what is said last. */
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
  // Playwright looks for visible elements alone here, and does not tell hidden ones from those that are not there.
  return names[last ?? ""] ?? "not seen";
}

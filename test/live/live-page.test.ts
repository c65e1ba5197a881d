import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BareClient, type LendScene, startLendScene } from "../support/lend-scene.ts";
import { openLink, says } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

let scene: LendScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([startLendScene({ EGRESS_ALLOW: "127.0.0.0/8" }), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
}, 60_000);

const colours = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255], black: [0, 0, 0] };
type Colour = keyof typeof colours;

const pageOf = (query: string) => scene.site.url(`/colours.html?${query}`);
const nothing = { timeout: 30_000 };

async function makeLink(session: string, request: object = {}): Promise<{ id: string; url: string }> {
  const { status, body } = await scene.rest(`${session}/view-links`, request);
  expect(status).toBe(201);
  return body;
}

/** The colour of the picture's middle. JPEG is not exact. */
function colourOf(page: Page): Promise<string> {
  return page.evaluate((known) => {
    const picture = document.querySelector("canvas");
    const { data = [] } = picture?.getContext("2d")?.getImageData(picture.width / 2, picture.height / 2, 1, 1) ?? {};
    const isLike = (colour: number[]) => colour.every((part, index) => Math.abs(part - (data[index] ?? 0)) < 30);
    if ((data[3] ?? 0) === 0) return "nothing";
    return Object.entries(known).find(([, colour]) => isLike(colour))?.[0] ?? [...data].join();
  }, colours);
}

async function sees(page: Page, colour: Colour): Promise<void> {
  await expect.poll(() => colourOf(page), nothing).toBe(colour);
}

const navigate = async (session: string, url: string) =>
  expect(await scene.rest(`${session}/navigate`, { url })).toMatchObject({ status: 200 });

const interact = async (session: string, action: object) =>
  expect(await scene.rest(`${session}/interact`, { action })).toMatchObject({ status: 200 });

test.each(["headless-shell", "chromium"])(
  "two viewers of %s see its page, another tab, another origin, another size and a page after a crash",
  async (runtime) => {
    const session = await scene.open({ runtime });
    await navigate(session, pageOf("red"));
    const { url } = await makeLink(session, { name: "Support desk" });
    const viewers = await Promise.all([openLink(browser, url), openLink(browser, url)]);
    const all = (check: (page: Page) => Promise<unknown>) => Promise.all(viewers.map(({ page }) => check(page)));
    await all((page) => sees(page, "red"));
    await all((page) => says(page, "title", "red"));
    await all((page) => says(page, "viewers", "2 watching"));

    await interact(session, { kind: "tap", selector: "#open" });
    await all((page) => sees(page, "blue"));
    await interact(session, { kind: "activate_page", page_id: "page_1" });
    await all((page) => sees(page, "red"));

    await navigate(session, pageOf("lime").replace("127.0.0.1", "localhost"));
    await all((page) => sees(page, "lime"));
    // What it shows last counts, however soon it came after what it showed before.
    await navigate(session, pageOf("red-black"));
    await all((page) => sees(page, "black"));

    await interact(session, { kind: "close_page", page_id: "page_2" });
    using client = await BareClient.connect(await scene.cdpUrl(session));
    const attached = await client.attach();
    const size = { width: 800, height: 600, deviceScaleFactor: 1, mobile: false };
    await client.send("Emulation.setDeviceMetricsOverride", size, attached);
    await all((page) =>
      expect.poll(() => page.evaluate(() => document.querySelector("canvas")?.width), nothing).toBe(800),
    );

    client.socket.send(JSON.stringify({ id: 99, method: "Page.crash", sessionId: attached }));
    await all((page) => says(page, "notice", "crashed"));
    await navigate(session, pageOf("blue"));
    await all((page) => sees(page, "blue"));
    await all((page) => says(page, "notice", /^$/));
    expect(viewers.flatMap(({ faults }) => faults)).toEqual([]);
    await scene.rest(session, undefined, { method: "DELETE" });
    await all((page) => says(page, "notice", "The session has ended. It was ended by who had started it."));
    await all((page) => page.context().close());
  },
  120_000,
);

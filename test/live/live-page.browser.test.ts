import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { sees, sightsOf } from "../support/live-sights.ts";
import { openLink, says } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { runtimes } from "../support/runtimes.ts";

let scene: CdpScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([borrowCdpScene(), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
}, 60_000);

async function makeLink(session: string, request: object = {}): Promise<{ id: string; url: string }> {
  const { status, body } = await scene.rest(`${session}/view-links`, request);
  expect(status).toBe(201);
  return body;
}

test.each(runtimes)(
  "two viewers of %s see its page, another tab, another origin, another size and a page after a crash",
  async (runtime) => {
    const { pageOf, navigate, showAll } = sightsOf(scene);
    const session = await scene.open({ runtime });
    await navigate(session, pageOf("red"));
    const { url } = await makeLink(session, { name: "Support desk" });
    const viewers = await Promise.all([openLink(browser, url), openLink(browser, url)]);
    const all = (check: (page: Page) => Promise<unknown>) => Promise.all(viewers.map(({ page }) => check(page)));
    await all((page) => sees(page, "red"));
    await all((page) => says(page, "title", "red"));
    await all((page) => says(page, "viewers", "2 watching"));

    await showAll(session, viewers, "frames");
    await scene.rest(session, undefined, { method: "DELETE" });
    await all((page) => says(page, "notice", "The session has ended. It was ended by its owner."));
    await all((page) => page.context().close());
  },
  120_000,
);

test("a viewer sees the help, passes the link on, and is notified of a failed navigation", async () => {
  const session = await scene.open();
  const { url } = await makeLink(session, { control: true });
  const { page } = await openLink(browser, url, { permissions: ["clipboard-read", "clipboard-write"] });
  await says(page, "control-status", "Nobody is in control");
  await page.locator("#picture").click();
  await says(page, "notice", "Press Take control first.");
  await page.getByRole("button", { name: "Copy link" }).click();
  await says(page, "notice", "The link was copied. Anyone with the link has the same access as you.");
  expect(new URL(await page.evaluate(() => navigator.clipboard.readText())).hash).toBe(new URL(url).hash);

  const { status } = await scene.rest(`${session}/navigate`, { url: "https://127.0.0.1:1025/" });
  expect(status).toBe(502);
  await says(page, "notice", "The page could not be loaded. Reload it, or go to another address.");
  expect(await page.locator("#address").inputValue()).toBe("");
  await page.context().close();

  const watching = await openLink(browser, (await makeLink(session)).url);
  await says(watching.page, "control-status", "Nobody is in control");
  await watching.page.locator("#picture").click();
  await says(watching.page, "notice", "This link is for watching only.");
  await watching.page.context().close();
}, 60_000);

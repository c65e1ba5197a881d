import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowLendScene, type LendScene } from "../support/lend-scene.ts";
import { sees, sightsOf } from "../support/live-sights.ts";
import { openLink, says } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

let scene: LendScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([borrowLendScene(), launchPlainBrowser()]);
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

test.each(["headless-shell", "chromium"])(
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
    await all((page) => says(page, "notice", "The session has ended. It was ended by who had started it."));
    await all((page) => page.context().close());
  },
  120_000,
);

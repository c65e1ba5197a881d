import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { handBack, openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

let scene: CdpScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([borrowCdpScene(), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
}, 60_000);

test("a person passes a bot check by the link of its event, and the session continues", async () => {
  const session = await scene.open();
  const landed = await scene.rest(`${session}/navigate`, { url: scene.site.url("/check.html") });
  expect(landed.body.status).toBe("paused");
  const newest = async () => (await scene.rest("/v1/events?type=session.challenge_detected&limit=1")).body.data[0];
  await expect.poll(newest, { timeout: 20_000 }).toMatchObject({ data: { paused: true } });
  const { data } = await newest();
  const path = `/v1/sessions/${data.session_id}`;
  expect(path).toBe(session);
  const { body: link } = await scene.rest(`${path}/view-links`, { control: true, name: "Ada" });

  const { page, faults } = await openLink(browser, link.url);
  await says(page, "notice", "The session is paused at a bot check (generic).");
  await page.locator("canvas[data-sequence]").waitFor();
  await takeControl(page);
  const pass = await windowPoint(page, { x: 50, y: 92 });
  await page.mouse.click(pass.x, pass.y);
  await says(page, "status", "Live");
  await handBack(page);
  expect(await scene.rest(`${path}/navigate`, { url: scene.site.url("/plain.html") })).toMatchObject({
    status: 200,
    body: { title: "Plain", status: "live" },
  });
  expect(faults).toEqual([]);
}, 120_000);

import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";

let service: Service;
let browser: Browser;
beforeAll(async () => {
  [service, browser] = await Promise.all([startService(), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
}, 60_000);

test("the link that a start prints leads to a session to watch and control, the same on each visit", async () => {
  const [path] = /\/try\/\S+/.exec(service.output()) ?? [];
  if (!path) throw new Error("no link is printed");
  const { page, faults } = await openLink(browser, `${service.url}${path}`);
  await says(page, "title", "Pilothouse demo");
  await page.locator("canvas[data-sequence]").waitFor();
  await takeControl(page);
  const name = await windowPoint(page, { x: 640, y: 360 });
  await page.mouse.click(name.x, name.y);
  await page.keyboard.press("Tab");
  await page.keyboard.type("Ada");
  const { page: again } = await openLink(browser, `${service.url}${path}`);
  await says(again, "viewers", "2 watching");
  const { body } = await restClient(service)("/v1/sessions?status=live");
  expect(body.data).toHaveLength(1);
  expect((await fetch(`${service.url}/try/something-else`)).status).toBe(404);
  expect(faults).toEqual([]);
}, 60_000);

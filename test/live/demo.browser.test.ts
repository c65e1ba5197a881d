import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { restClient } from "../support/rest.ts";
import { type Borrowed, borrowService } from "../support/warm-service.ts";

let borrowed: Borrowed;
let browser: Browser;
beforeAll(async () => {
  [borrowed, browser] = await Promise.all([borrowService(), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await borrowed?.service.stop();
  await borrowed?.site.stop();
}, 60_000);

test("the link that a start prints leads to a session to watch and control, the same on each visit", async () => {
  const { service, welcome, developerKey: key } = borrowed;
  const [path] = /\/try\/\S+/.exec(welcome) ?? [];
  if (!path) throw new Error("no link is printed");
  const { page, faults } = await openLink(browser, `${service.url}${path}`);
  await says(page, "title", "Pilothouse demo");
  await page.locator("canvas[data-sequence]").waitFor();
  await takeControl(page);
  const margin = await windowPoint(page, { x: 640, y: 20 });
  await page.mouse.click(margin.x, margin.y);
  await page.keyboard.press("Tab");
  await page.keyboard.type("Ada");
  const { page: again } = await openLink(browser, `${service.url}${path}`);
  await says(again, "viewers", "2 watching");
  const rest = restClient({ url: service.url, key });
  const { body } = await rest("/v1/sessions?status=live");
  onTestFinished(async () => void (await rest(`/v1/sessions/${body.data[0].id}`, undefined, { method: "DELETE" })));
  expect(body.data).toHaveLength(1);
  const shown = async () => JSON.stringify((await rest(`/v1/sessions/${body.data[0].id}/observe`, {})).body);
  await page.keyboard.press("Enter");
  await expect.poll(shown).toContain("Thank you, Ada!");
  await page.getByRole("button", { name: "Reload" }).click();
  await expect.poll(shown).toContain("Welcome back, Ada!");
  expect((await fetch(`${service.url}/try/something-else`)).status).toBe(404);
  expect(faults).toEqual([]);
}, 60_000);

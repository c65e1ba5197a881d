import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { borrowLendScene, type LendScene } from "../support/lend-scene.ts";

let scene: LendScene;
beforeAll(async () => {
  scene = await borrowLendScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

async function connect(url: string) {
  const browser = await chromium.connectOverCDP(url);
  onTestFinished(() => browser.close());
  const [context] = browser.contexts();
  const [page] = context?.pages() ?? [];
  if (!context || !page) throw new Error("the browser shows no page");
  return { browser, context, page };
}

test("Playwright drives the page that REST drives", async () => {
  const session = await scene.open();
  const { page } = await connect(await scene.cdpUrl(session));
  await page.goto(scene.site.url("/form.html"));
  await page.fill("#name", "Grace");
  await page.click("#go");
  const state = await scene.rest(`${session}/state`);
  expect(state.body).toMatchObject({ url: scene.site.url("/form.html"), title: "click go 1" });
  await scene.rest(`${session}/interact`, { action: { kind: "type", selector: "#empty", text: "by REST" } });
  expect(await page.inputValue("#empty")).toBe("by REST");
  expect((await page.screenshot()).length).toBeGreaterThan(1_000);
});

test("Playwright finds the session by /json/version, with a key in a header", async () => {
  const session = await scene.open();
  const headers = { authorization: `Bearer ${scene.service.key}` };
  const browser = await chromium.connectOverCDP(`${scene.service.url}${session}/cdp`, { headers });
  onTestFinished(() => browser.close());
  expect(browser.contexts().flatMap((context) => context.pages())).toHaveLength(1);
});

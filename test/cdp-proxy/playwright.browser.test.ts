import { chromium } from "playwright";
import { connect as connectPuppeteer, type Page } from "puppeteer-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { runtimes } from "../support/runtimes.ts";

let scene: CdpScene;
let session: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  session = await scene.open();
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

test("Playwright controls the same page as REST", async () => {
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

test("Playwright connects through /json/version with an API key in a header", async () => {
  const headers = { authorization: `Bearer ${scene.service.key}` };
  const browser = await chromium.connectOverCDP(`${scene.service.url}${session}/cdp`, { headers });
  onTestFinished(() => browser.close());
  expect(browser.contexts().flatMap((context) => context.pages())).toHaveLength(1);
});

test("session files distinguish two downloads of the same name by GUID", async () => {
  const { browser, page } = await connect(await scene.cdpUrl(session));
  const cdp = await browser.newBrowserCDPSession();
  await cdp.send("Browser.setDownloadBehavior", { behavior: "default", eventsEnabled: true });
  const files = async () => (await scene.rest(`${session}/files`)).body.data;
  const guids: string[] = [];
  cdp.on("Browser.downloadWillBegin", ({ guid }) => void guids.push(guid));
  await page.goto(scene.site.url("/form.html"));
  for (const text of ["first", "the second"]) {
    await page.evaluate((content) => {
      const link = Object.assign(document.createElement("a"), { href: `data:,${content}`, download: "same.txt" });
      link.click();
    }, text);
    await expect.poll(async () => (await files()).length).toBe(text === "first" ? 1 : 2);
  }
  // A file may be listed before the event has arrived.
  await expect.poll(() => guids).toHaveLength(2);
  await expect.poll(files).toMatchObject([
    { name: "same (1).txt", bytes: 10, guid: guids[1] },
    { name: "same.txt", bytes: 5, guid: guids[0] },
  ]);
  await scene.rest(`${session}/files/put.txt`, "put", { method: "PUT" });
  expect((await files())[0]).not.toHaveProperty("guid");
});

/** Expression for the page's locale and time zone. */
const shown = `[new Intl.DateTimeFormat().resolvedOptions().timeZone, new Intl.NumberFormat().resolvedOptions().locale,
  (1234.5).toLocaleString()]`;

test.each(runtimes)(
  "locale and time zone set by Playwright and Puppeteer apply in %s until they disconnect",
  async (runtime) => {
    const ours = ["America/New_York", "en-US", "1,234.5"];
    const session = await scene.open({ runtime, timezone: "America/New_York", locale: "en-US" });
    const [here, elsewhere] = [
      scene.site.url("/form.html"),
      scene.site.url("/form.html").replace("127.0.0.1", "localhost"),
    ];
    await scene.rest(`${session}/navigate`, { url: here });
    const { browser, page: sessionPage } = await connect(await scene.cdpUrl(session));
    expect(await sessionPage.evaluate(shown)).toEqual(ours);

    const own = await browser.newContext({ locale: "de-DE", timezoneId: "Europe/Berlin" });
    const german = ["Europe/Berlin", "de-DE", "1.234,5"];
    for (const page of [await own.newPage(), await own.newPage()]) {
      expect(await page.evaluate(shown)).toEqual(german);
      for (const url of [here, elsewhere]) {
        await page.goto(url);
        expect([url, await page.evaluate(shown)]).toEqual([url, german]);
      }
    }
    expect(await sessionPage.evaluate(shown)).toEqual(ours);

    const browserWSEndpoint = await scene.cdpUrl(session);
    const puppeteer = await connectPuppeteer({ browserWSEndpoint, defaultViewport: null });
    onTestFinished(() => puppeteer.disconnect());
    const page = (await puppeteer.pages()).find((each) => each.url() === here);
    if (!page) throw new Error("Puppeteer sees no page of the session");
    await page.emulateTimezone("Asia/Tokyo");
    const cdp = await page.createCDPSession();
    await cdp.send("Emulation.setLocaleOverride", { locale: "fr-FR" });
    expect(await sessionPage.evaluate(shown)).toEqual(["Asia/Tokyo", "fr-FR", "1\u202f234,5"]);
    await cdp.detach();
    await expect.poll(() => sessionPage.evaluate(shown)).toEqual(["Asia/Tokyo", "en-US", "1,234.5"]);
    await page.emulateTimezone();
    await expect.poll(() => sessionPage.evaluate(shown)).toEqual(ours);
    await expect(page.emulateTimezone("Nowhere")).rejects.toThrow("Invalid timezone ID: Nowhere");
    await expect.poll(() => sessionPage.evaluate(shown)).toEqual(ours);

    // A popup shares the process of the page, whose settings are the session's.
    const opening = new Promise<Page | null>((resolve) => void page.once("popup", resolve));
    await page.evaluate((url) => void window.open(url), here);
    const popup = await opening;
    await popup?.emulateTimezone("Asia/Kolkata");
    expect(await popup?.evaluate(shown)).toEqual(["Asia/Calcutta", "en-US", "1,234.5"]);
    await puppeteer.disconnect();
    await expect.poll(() => sessionPage.evaluate(shown)).toEqual(ours);
  },
  60_000,
);

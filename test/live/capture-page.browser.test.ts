import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type BrowserProcess, launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { CapturePage } from "../../workers/live/capture-page.ts";
import { executables, keepingLog } from "../isolation/world.ts";
import { FixtureSite } from "../support/fixture-site.ts";

const site = new FixtureSite();
const pool = new SlotPool({ size: 1, executables, log: keepingLog(), allow: ["127.0.0.0/8"] });
beforeAll(async () => {
  await Promise.all([site.start(), pool.start()]);
}, 60_000);
afterAll(async () => {
  await pool.stop();
  await site.stop();
}, 60_000);

async function launch(): Promise<BrowserProcess> {
  const slot = pool.acquire();
  if (!slot) throw new Error("a new pool has no free slot");
  onTestFinished(() => slot.release());
  return launchBrowser(slot, { runtime: "chromium", canCapture: true, signal: AbortSignal.timeout(30_000) });
}

test("captures a tab that navigated to another site while its capture began", async () => {
  const browser = await launch();
  const { capturePage, targets } = browser;
  if (!capturePage) throw new Error("the browser has no page that captures");
  const find = (isMeant: (url: string) => boolean) => [...targets.own].find(({ info }) => isMeant(info.url));
  const { info, session: tab } = find((url) => url === "about:blank") ?? {};
  if (!info || !tab) throw new Error("the browser has no tab");
  const shown = { targetId: info.targetId, width: 1280, height: 720 };
  const go = (url: string) => tab.send("Page.navigate", { url });
  await go(site.url("/plain.html"));

  {
    const before = new Set(targets.own);
    await using capture = await CapturePage.open(browser, capturePage);
    const page = [...targets.own].find((target) => !before.has(target) && target.info.type === "other");
    if (!page) throw new Error("the page that captures is not there");
    const hold = `{
      const { mediaDevices } = navigator;
      const begin = mediaDevices.getUserMedia.bind(mediaDevices);
      globalThis.asked = new Promise((ask) => {
        mediaDevices.getUserMedia = (constraints) =>
          new Promise((goOn) => { globalThis.goOn = goOn; ask(); }).then(() => begin(constraints));
      });
    }`;
    await page.session.send("Runtime.evaluate", { expression: hold });
    const outcome = capture.call("offer", shown).then(({ sdp }) => sdp, String);
    await page.session.send("Runtime.evaluate", { expression: "asked", awaitPromise: true });
    await go(site.url("/plain.html").replace("127.0.0.1", "localhost"));
    await page.session.send("Runtime.evaluate", { expression: "goOn()" });
    // Chromium rarely captures the new document at once.
    expect(await outcome).toMatch(/AbortError|NotReadableError|VP8/);
  }

  const offered = async () => {
    await using capture = await CapturePage.open(browser, capturePage);
    return (await capture.call("offer", shown)).sdp;
  };
  await expect.poll(() => offered().catch(String), { timeout: 20_000, interval: 500 }).toContain("VP8");
}, 60_000);

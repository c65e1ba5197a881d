import { type Browser, chromium, type Page } from "playwright";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaptureFormat, CaptureKind, CaptureScale } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";
import { readPng } from "../support/png.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const { SCREENSHOT } = CaptureKind;
const { JPEG, WEBP } = CaptureFormat;

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host, site.host.replace("127.0.0.1", "localhost")]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

const elements = [
  ["an element with uneven edges", { selector: "#uneven" }],
  ["an element in a scroller", { selector: "#inside" }],
  ["an element taller than the viewport", { selector: "#tall" }],
  ["an element in a frame of another origin", { selector: "#framed", frame: ["iframe"] }],
] as const;

describe.each(runtimes)("a screenshot in %s", (runtime) => {
  let referee: Browser;
  beforeAll(async () => {
    const { env, platform } = process;
    const executables = findBrowsers({ env, platform, dataDirectory: "/nonexistent", disk: realDisk });
    referee = await chromium.launch({ executablePath: executables[runtime] ?? "" });
  });
  afterAll(() => referee?.close());

  const factors = runtime === "chromium" ? [1, 2, 3] : [2];
  describe.each(factors)("on a device with scale factor %d", (deviceScaleFactor) => {
    const viewport = { width: 600, height: 400 };
    let session: DrivenSession;
    let page: Page;

    beforeAll(async () => {
      session = await worker.open({ runtime, viewport: { ...viewport, deviceScaleFactor } });
      await session.navigate({ url: site.url("/pictures.html") });
      page = await referee.newPage({ viewport, deviceScaleFactor });
      await page.goto(site.url("/pictures.html"));
    });
    afterAll(async () => {
      await page?.close();
      await session?.destroy();
    });

    async function expectSame(request: object, theirs: Buffer): Promise<void> {
      const { data, header } = await session.capture({ kind: SCREENSHOT, ...request });
      const [own, other] = [readPng(data), readPng(theirs)];
      expect([own.width, own.height]).toEqual([other.width, other.height]);
      expect([header.width, header.height]).toEqual([other.width, other.height]);
      expect(own.rgb.equals(other.rgb)).toBe(true);
    }

    test.each(
      withLong<["device" | "css", CaptureScale]>([["device", CaptureScale.DEVICE]], [["css", CaptureScale.CSS]]),
    )("equals that of Playwright, in %s pixels", async (scale, captureScale) => {
      await expectSame({ scale: captureScale }, await page.screenshot({ scale }));
      await expectSame({ scale: captureScale, fullPage: true }, await page.screenshot({ scale, fullPage: true }));
    });

    test.each(withLong(elements.slice(0, 1), elements.slice(1)))("shows %s as Playwright does", async (_name, aim) => {
      const isFramed = "frame" in aim;
      // Playwright does not restore the scroll position.
      await page.reload();
      // A frame of another origin does not render out of view, and Playwright waits for its next picture.
      if (isFramed) await page.locator(aim.frame[0]).scrollIntoViewIfNeeded();
      const place = isFramed ? page.frameLocator(aim.frame[0]) : page;
      await expectSame(aim, await place.locator(aim.selector).screenshot());
    });
  });

  test("leaves the page unchanged after an observation", async () => {
    const session = await worker.open({ runtime, viewport: { width: 600, height: 400 } });
    await session.navigate({ url: site.url("/pictures.html") });
    await session.observe();
    await session.interact({ action: { case: "scroll", value: { dy: 321 } } });
    await session.capture({ kind: SCREENSHOT, fullPage: true });
    for (const [, { selector, ...inside }] of elements) {
      const frame = "frame" in inside ? [...inside.frame] : [];
      await session.capture({ kind: SCREENSHOT, selector, frame });
    }
    const { title } = await session.interact({ action: { case: "key", value: { key: "F2" } } });
    expect(title).toBe("600x400 at 0,321, 0");
    await session.destroy();
  });

  test("is refused with the limit when its format cannot hold it", async () => {
    const session = await worker.open({ runtime, viewport: { width: 600, height: 400 } });
    await session.navigate({ url: site.url("/tall?pixels=20000") });
    const take = (format: CaptureFormat) => session.capture({ kind: SCREENSHOT, format, fullPage: true });
    await expect(take(WEBP)).rejects.toMatchObject({
      slug: "validation-failed",
      detail: "format: a webp has at most 16383 pixels a side, and this one would be 600x20000",
    });
    expect((await take(JPEG)).header).toMatchObject({ width: 600, height: 20_000 });
    await session.navigate({ url: site.url("/tall?pixels=70000") });
    await expect(take(JPEG)).rejects.toMatchObject({
      slug: "validation-failed",
      detail: "format: a jpeg has at most 65535 pixels a side, and this one would be 600x70000",
    });
    await session.destroy();
  });
});

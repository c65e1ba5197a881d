import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { probeRuntimes } from "../../workers/base/runtimes.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { type Device, plainDevice } from "../../workers/pages/device/device.ts";
import { type BrowserOrigin, BrowserPool } from "../../workers/pool/browser-pool.ts";
import type { SessionBrowser } from "../../workers/pool/session-browser.ts";
import { WarmBrowser } from "../../workers/pool/warm-browser.ts";
import { killBrowsers } from "../support/kill-browsers.ts";
import { longTest } from "../support/long-test.ts";

describe("a pool of browsers", () => {
  const executables = findBrowsers({
    env: process.env,
    dataDirectory: "/",
    platform: process.platform,
    disk: realDisk,
  });
  const ready: BrowserOrigin[] = [];
  const failed = vi.fn();
  const log = { debug: () => undefined, info: () => undefined, warn: failed, error: failed };
  let directory: string;
  let majors: ReadonlyMap<"chromium" | "headless-shell", number>;
  let slots: SlotPool;
  let pool: BrowserPool;
  let isOpen = true;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "pool-"));
    majors = await probeRuntimes(executables);
  });

  afterEach(async () => {
    await pool.stop();
    await slots.stop();
    expect(failed).not.toHaveBeenCalled();
    ready.length = 0;
  });

  afterAll(() => rm(directory, { recursive: true }));

  async function setUpPool({ size, ...options }: { size: number; max?: number; extraFlags?: string[] }): Promise<void> {
    slots = new SlotPool({ size, executables, log });
    await slots.start();
    pool = new BrowserPool({
      slots,
      runtimes: majors.keys(),
      log,
      max: 8,
      tick: 200,
      isOpen: () => isOpen,
      onReady: (how) => ready.push(how),
      ...options,
    });
  }

  async function setUp(size: number, warm = 1): Promise<void> {
    await setUpPool({ size });
    pool.start();
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(warm);
  }

  function take(archetype: string, runtime: "chromium" | "headless-shell" = "headless-shell"): Promise<SessionBrowser> {
    const device: Device = plainDevice(archetype);
    return pool.take({
      runtime,
      device,
      signal: AbortSignal.timeout(20_000),
      makeProfile: undefined,
    });
  }

  const widthOf = async ({ pages }: SessionBrowser) => {
    const { result } = await pages.active.cdp.send("Runtime.evaluate", { expression: "screen.width" });
    return result.value;
  };

  test.each([
    ["its sandbox", "--no-sandbox"],
    ["the seccomp filters of its renderers", "--disable-seccomp-filter-sandbox"],
  ])("the probe rejects a browser without %s", async (_what, flag) => {
    await setUpPool({ size: 1, extraFlags: [flag] });
    await expect(pool.probe()).rejects.toThrow(/none of the browser's [1-9]\d* renderers has its own seccomp filter/);
    expect(pool.warm).toBe(0);
  });

  test("the browser of the probe becomes the first session's, or ends when the pool keeps none", async () => {
    await setUpPool({ size: 1 });
    await pool.probe();
    const browser = await take("desktop-chrome");
    expect(ready).toEqual(["adopted"]);
    await browser.dispose();
    await pool.stop();
    await slots.stop();
    await setUpPool({ size: 1, max: 0 });
    await pool.probe();
    expect([pool.warm, slots.free]).toEqual([0, 1]);
  });

  test("returns the prelaunched browser, configured for the session's device, and launches the next one", async () => {
    await setUp(3);
    const browser = await take("desktop-chrome");
    expect(ready).toEqual(["adopted"]);
    expect(await widthOf(browser)).toBe(1920);
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(1);
    const other = await take("pixel-7");
    expect(ready).toEqual(["adopted", "adopted"]);
    expect(await widthOf(other)).toBe(412);
    await Promise.all([browser.dispose(), other.dispose()]);
  });

  test("releases the slot of a warm browser for a session that cannot use that browser", async () => {
    await setUp(1);
    expect(pool.free).toBe(1);
    const browser = await take("desktop-chrome", "chromium");
    expect([ready, pool.free]).toEqual([["launched"], 0]);
    await expect(take("desktop-chrome")).rejects.toMatchObject({ slug: "capacity-unavailable" });
    await browser.dispose();
  });

  longTest(
    "releases the slot of a launching browser for a session that cannot use that browser",
    async () => {
      await setUp(1, 0);
      expect(pool.free).toBe(1);
      const browser = await take("desktop-chrome", "chromium");
      expect([ready, pool.free]).toEqual([["launched"], 0]);
      await browser.dispose();
    },
    60_000,
  );

  test("launches another browser when a session's browser has died before its use", async () => {
    await setUp(2);
    killBrowsers();
    const browser = await take("desktop-chrome");
    expect([ready, await widthOf(browser)]).toEqual([["launched"], 1920]);
    expect(failed).toHaveBeenCalledExactlyOnceWith(expect.anything(), "failed to adopt a warm browser");
    failed.mockClear();
    await browser.dispose();
  });

  test("releases the slot of a browser that does not answer after its launch", async () => {
    await setUpPool({ size: 1, max: 0 });
    vi.spyOn(WarmBrowser.prototype, "adopt").mockRejectedValueOnce(new Error("no answer"));
    await expect(take("desktop-chrome")).rejects.toThrow("no answer");
    expect(slots.free).toBe(1);
    await (await take("desktop-chrome")).dispose();
  });

  test("assigns a launching browser to the first session, and other sessions their own", async () => {
    await setUp(3);
    await (await take("desktop-chrome")).dispose();
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(1);
    const browsers = await Promise.all([take("desktop-chrome"), take("desktop-chrome"), take("desktop-chrome")]);
    expect(ready.filter((how) => how === "adopted")).toHaveLength(2);
    expect(new Set(browsers.map(({ slot }) => slot.directory)).size).toBe(3);
    await Promise.all(browsers.map((browser) => browser.dispose()));
  });

  test("keeps no browser while the worker accepts no sessions, and replaces one that dies before its use", async () => {
    await setUp(2);
    isOpen = false;
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(0);
    isOpen = true;
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(1);
    killBrowsers();
    // The pool is empty only until the next launch.
    await expect.poll(() => pool.warm, { timeout: 20_000, interval: 1 }).toBe(0);
    await expect.poll(() => pool.warm, { timeout: 20_000 }).toBe(1);
    const browser = await take("desktop-chrome");
    expect([ready, await widthOf(browser)]).toEqual([["adopted"], 1920]);
    await browser.dispose();
  });
});

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { type BrowserProcess, launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { PageRegistry } from "../../workers/pages/page-registry.ts";
import { CommandProgress } from "../../workers/pages/progress.ts";
import { runtimes } from "../support/runtimes.ts";

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
let slots: SlotPool;

beforeAll(async () => {
  const executables = findBrowsers({
    env: process.env,
    dataDirectory: "/nonexistent",
    platform: process.platform,
    disk: realDisk,
  });
  slots = new SlotPool({ size: 2, executables, log: silent });
  await slots.start();
});

afterAll(() => slots?.stop());

async function launch(runtime: "headless-shell" | "chromium"): Promise<BrowserProcess> {
  const slot = slots.acquire();
  if (!slot) throw new Error("no free slot");
  onTestFinished(() => slot.release());
  return launchBrowser(slot, { runtime, signal: AbortSignal.timeout(30_000) });
}

/** A page cannot close the last window that no script has opened, so these tests close it by a command. */
describe.each(runtimes)("a session's pages in %s", (runtime) => {
  test("include a blank one when the last one closes", { timeout: 60_000 }, async () => {
    const browser = await launch(runtime);
    const closed: string[] = [];
    const ignore = () => undefined;
    const onClosed = ({ id }: { id: string }) => void closed.push(id);
    const pages = new PageRegistry(browser, {
      onOpened: ignore,
      onTab: ignore,
      onClosed,
      onLost: ignore,
    });
    await pages.start();
    using progress = new CommandProgress(10_000, []);
    await pages.close(pages.active, progress);
    await vi.waitUntil(() => pages.all.length === 1 && closed.length === 1, { timeout: 10_000 });
    expect(closed).toEqual(["page_1"]);
    expect(pages.active.id).toBe("page_2");
    expect(pages.active.tab.url).toBe("about:blank");
    pages.end();
  });

  test("keep their ids when a hung one gets another tab", { timeout: 60_000 }, async () => {
    const browser = await launch(runtime);
    const ignore = () => undefined;
    const pages = new PageRegistry(browser, {
      onOpened: ignore,
      onTab: ignore,
      onClosed: ignore,
      onLost: ignore,
    });
    await pages.start();
    const { active } = pages;
    active.cdp.send("Runtime.evaluate", { expression: "for (;;);" }).catch(ignore);
    await pages.replace(active);
    const { result } = await active.cdp.send("Runtime.evaluate", { expression: "1 + 1" });
    expect(result.value).toBe(2);
    expect(pages.all.map(({ id }) => id)).toEqual(["page_1"]);
    pages.end();
  });
});

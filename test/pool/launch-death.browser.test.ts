import { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import type { Slot } from "../../workers/isolation/slot.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { plainDevice } from "../../workers/pages/device/device.ts";
import { WarmBrowser } from "../../workers/pool/warm-browser.ts";
import { executables, keepingLog } from "../isolation/world.ts";
import { killBrowsers } from "../support/kill-browsers.ts";
import { withLong } from "../support/long-test.ts";
import { runtimes } from "../support/runtimes.ts";

type Runtime = (typeof runtimes)[number];

/** Number of equal parts of a launch. A browser is killed at the end of each. */
const parts = 16;

/** A launch must fail long before its deadline when its browser dies. */
const deadlineMs = 20_000;
const soonMs = 10_000;

const log = keepingLog();
const slots = new SlotPool({ size: 2, executables, log });

beforeAll(async () => {
  await slots.start();
});

afterAll(async () => {
  await slots.stop();
  expect(log.complaints).toEqual([]);
});

async function freeSlot(): Promise<Slot> {
  await expect.poll(() => slots.free, { timeout: soonMs }).toBeGreaterThan(0);
  const slot = slots.acquire();
  if (!slot) throw new Error("there is no free slot");
  return slot;
}

/** Launches a browser, and kills it after a time. Returns the milliseconds of the launch and those left to it. */
async function launch(runtime: Runtime, killAfterMs = deadlineMs) {
  const slot = await freeSlot();
  await slot.ready;
  const beganAt = performance.now();
  const signal = AbortSignal.timeout(deadlineMs);
  const how = { runtime, device: plainDevice(), signal, extraFlags: [], profile: undefined };
  const over = WarmBrowser.launch(slot, how).then(
    () => performance.now(),
    () => performance.now(),
  );
  await Promise.race([over, delay(killAfterMs)]);
  const killedAt = performance.now();
  killBrowsers();
  const overAt = await over;
  await slot.release();
  return { took: overAt - beganAt, rest: overAt - killedAt };
}

test.each(withLong([], runtimes))(
  "a launch of %s ends soon after the death of its browser at any time",
  async (runtime) => {
    const { took } = await launch(runtime);
    for (let part = 1; part <= parts; part += 1) {
      const { rest } = await launch(runtime, (took * part) / parts);
      expect(rest, `after ${part} parts of ${parts}`).toBeLessThan(soonMs);
    }
  },
  120_000,
);

test("a browser whose processes cannot be killed is abandoned", async () => {
  const slot = await freeSlot();
  onTestFinished(() => slot.release());
  const browser = await launchBrowser(slot, { runtime: "headless-shell", signal: AbortSignal.timeout(30_000) });
  onTestFinished(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  // As when processes wait in the kernel for a disk that does not respond.
  vi.spyOn(slot, "killProcesses").mockResolvedValue();
  vi.spyOn(ChildProcess.prototype, "kill").mockReturnValue(true);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const onGivenUp = vi.fn();
  void browser.kill().then(onGivenUp);
  await vi.advanceTimersByTimeAsync(deadlineMs);
  vi.useRealTimers();
  await expect.poll(() => onGivenUp.mock.calls).toHaveLength(1);
  await expect(browser.browserSession.send("Browser.getVersion")).rejects.toThrow("the browser has exited");
});

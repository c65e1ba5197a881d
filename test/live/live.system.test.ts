import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type ViewRequest, ViewRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type LiveFrame, LiveViewerSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import type { LiveHub } from "../../workers/live/live-hub.ts";
import { plainDevice } from "../../workers/pages/device/device.ts";
import type { SessionBrowser } from "../../workers/pool/session-browser.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { descendantsOf } from "../support/process-list.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

const site = new FixtureSite();
let worker: WorkerUnderTest;

beforeAll(async () => {
  await site.start();
  worker = await WorkerUnderTest.start([site.host]);
});
afterAll(async () => {
  await worker?.stop();
  await site.stop();
});

const noActivity = () => ({ [Symbol.dispose]: () => undefined });

/** Yields a session's frames to a viewer's gateway until the generator is closed. */
async function* watch(desk: LiveHub, activity: () => Disposable = noActivity): AsyncGenerator<LiveFrame> {
  const requests = new BoundedQueue<ViewRequest>({ items: 8 });
  const who = create(LiveViewerSchema, { id: "vwr_1", name: "Ada" });
  const session = { id: "ses_1", describe: () => ({ status: SessionStatus.LIVE }), activity };
  const messages = new BoundedQueue<ViewRequest>({ items: 1 });
  const viewer = desk.view({ who, isHidden: false, requests: messages }, session);
  await viewer.next();
  try {
    for await (const { frame } of desk.frames(requests)) {
      if (!frame) continue;
      void requests.push(create(ViewRequestSchema, { request: { ack: { sequence: frame.sequence } } }));
      yield frame;
    }
  } finally {
    await viewer.return(undefined);
  }
}

/** Watches two frames. */
async function watchAWhile(desk: LiveHub, activity: () => Disposable): Promise<void> {
  let frames = 0;
  for await (const _ of watch(desk, activity)) {
    frames += 1;
    if (frames === 2) break;
  }
  expect(frames).toBe(2);
}

async function take(runtime: "headless-shell" | "chromium"): Promise<SessionBrowser> {
  const signal = AbortSignal.timeout(30_000);
  const device = plainDevice();
  const browser = await worker.browsers.take({ runtime, device, makeProfile: undefined, signal });
  onTestFinished(() => browser.dispose());
  browser.relay.allow.add(site.host);
  return browser;
}

test.each(["headless-shell", "chromium"] as const)(
  "%s captures frames only while a viewer watches",
  async (runtime) => {
    const browser = await take(runtime);
    const { cdp } = browser.pages.active;
    await cdp.send("Page.navigate", { url: site.url("/moving.html") });
    const send = vi.spyOn(cdp, "send");
    const frame = vi.fn();
    cdp.on("Page.screencastFrame", frame);
    const ends = vi.fn();
    const told = () => send.mock.calls.map(([method]) => method).filter((method) => method.endsWith("Screencast"));
    const processes = () => descendantsOf(process.pid).map(({ pid }) => pid);

    await watchAWhile(browser.liveHub, () => ({ [Symbol.dispose]: ends }));
    const before = processes();
    // While the document is being replaced, the page rejects the command, which is then repeated.
    expect([...new Set(told())]).toEqual(["Page.startScreencast", "Page.stopScreencast"]);
    expect(ends).toHaveBeenCalledTimes(1);
    // Pending frames have arrived before this response.
    await cdp.send("Page.stopScreencast");
    const seen = frame.mock.calls.length;
    const script =
      "new Promise((resolve) => { let left = 30; const step = () => left-- > 0 ? requestAnimationFrame(step) : resolve(); step(); })";
    await cdp.send("Runtime.evaluate", { expression: script, awaitPromise: true });
    expect(frame.mock.calls.length).toBe(seen);
    await watchAWhile(browser.liveHub, () => ({ [Symbol.dispose]: ends }));
    expect(processes().filter((pid) => !before.includes(pid))).toEqual([]);
  },
  90_000,
);

test.each(["headless-shell", "chromium"] as const)(
  "%s captures a static page in each requested size",
  async (runtime) => {
    const { pages, liveHub } = await take(runtime);
    const { cdp } = pages.active;
    await cdp.send("Page.navigate", { url: site.url("/plain.html") });
    let wanted = 800;
    const resize = () =>
      cdp.send("Emulation.setDeviceMetricsOverride", {
        width: wanted,
        height: 600,
        deviceScaleFactor: 1,
        mobile: false,
      });
    await resize();
    for await (const { width } of watch(liveHub)) {
      if (width !== wanted) continue;
      wanted += 1;
      if (wanted === 830) break;
      await resize();
    }
    expect(wanted).toBe(830);
  },
  60_000,
);

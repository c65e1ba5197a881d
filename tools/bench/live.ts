import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Browser, Page } from "playwright";
import { openLink, windowPoint } from "../../test/support/live-viewer.ts";
import { LiveKitServer } from "../../test/support/livekit-server.ts";
import { launchPlainBrowser } from "../../test/support/plain-browser.ts";
import { type Rest, restClient } from "../../test/support/rest.ts";
import { startService } from "../../test/support/service.ts";
import { atLeastVerdict, type Bench, boundVerdict, type Row, type Scale } from "./bench.ts";
import { readClock, takeViewerTimes } from "./clock-page.ts";
import { hostBusyMs, readTree, treeCpuMs, treePssBytes } from "./processes.ts";
import { median, percentile, spread } from "./samples.ts";
import { startSite } from "./site.ts";

/** Bars for LiveKit with one session. Without LiveKit, at most 15 frames are sent per second. */
const bars = { firstMs: 1_000, glassMs: 60, inputMs: 80, perSecond: 28, cores: 0.65, idlePercent: 1, idleMiB: 15 };

/** Machine load in percent above which latency is not meaningful. */
const maxBusyPercent = 85;

/** Milliseconds until a stream is steady, and from a viewer's disconnect until its resources are released. */
const settle = { stream: 4_000, left: 15_000 };

/** Quality of live pictures and their costs, over LiveKit and by frames. */
export const live: Bench = {
  name: "live",
  title:
    "one viewer of a page that scrolls 30 times a second, in full Chromium: read from the pictures that the viewer's browser shows",
  async run(scale): Promise<Row[]> {
    await using server = await LiveKitServer.start();
    const viewers = await launchPlainBrowser("--allow-loopback-in-peer-connection");
    try {
      return [
        ...(await measure("LiveKit", viewers, server.env, scale)),
        ...(await measure("frames", viewers, {}, scale)),
      ];
    } finally {
      await viewers.close();
    }
  },
};

type Way = "LiveKit" | "frames";

interface Scene {
  readonly way: Way;
  readonly rest: Rest;
  readonly viewers: Browser;
  readonly workerPid: number;
  readonly clockUrl: string;
}

async function measure(way: Way, viewers: Browser, env: Record<string, string>, scale: Scale): Promise<Row[]> {
  await using site = await startSite();
  // Each session launches its own browser, so that browsers can be assigned to sessions.
  const service = await startService({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "0", ...env });
  try {
    const scene = {
      way,
      viewers,
      clockUrl: site.clockUrl,
      rest: restClient(service),
      workerPid: service.pidOf("worker"),
    };
    return [...(await whileWatched(scene, scale)), ...(await onceLeft(scene, scale))];
  } finally {
    await service.stop();
  }
}

/** Opens a session. Returns its path and the pid of its browser. */
async function open({ rest, workerPid, clockUrl }: Scene, page: string): Promise<{ path: string; pid: number }> {
  const children = () => readTree(workerPid).filter(({ parent }) => parent === workerPid);
  const before = new Set(children().map(({ pid }) => pid));
  const { body } = await rest("/v1/sessions", { runtime: "chromium" });
  const [root] = children().filter(({ pid }) => !before.has(pid));
  if (!root) throw new Error("the session has no browser of its own");
  const path = `/v1/sessions/${body.id}`;
  await rest(`${path}/navigate`, { url: `${clockUrl}${page}` });
  return { path, pid: root.pid };
}

/** Opens a view link, and counts the bytes of its socket and peer connections. */
async function watch({ rest, viewers, way }: Scene, path: string) {
  const { body } = await rest(`${path}/view-links`, { control: true });
  let socketBytes = 0;
  const count = (page: Page) =>
    page.on("websocket", (socket) => {
      if (socket.url().endsWith("/v1/live"))
        socket.on("framereceived", ({ payload }) => (socketBytes += payload.length));
    });
  const prepare = (page: Page) =>
    page.addInitScript(() => {
      const connections: RTCPeerConnection[] = [];
      const Original = RTCPeerConnection;
      globalThis.RTCPeerConnection = class extends Original {
        constructor(...how: ConstructorParameters<typeof Original>) {
          super(...how);
          connections.push(this);
        }
      };
      Object.assign(globalThis, { connections });
      const isShown = new MutationObserver(() => {
        Object.assign(globalThis, { firstPictureMs: performance.now() });
        isShown.disconnect();
      });
      isShown.observe(document, { subtree: true, attributes: true, attributeFilter: ["data-sequence"] });
    });
  const { page } = await openLink(viewers, body.url, {}, async (opened) => {
    count(opened);
    await prepare(opened);
  });
  const first = way === "LiveKit" ? "video" : "";
  await page.waitForFunction((how) => document.querySelector("canvas")?.dataset.sequence?.startsWith(how), first);
  const peerBytes = () =>
    page.evaluate(async () => {
      // Reads the global that the init script has set.
      const { connections } = globalThis as unknown as { connections: RTCPeerConnection[] };
      const reports = await Promise.all(connections.map((connection) => connection.getStats()));
      const all = reports.flatMap((report) => [...report.values()]).filter(({ type }) => type === "inbound-rtp");
      return all.reduce((sum, { bytesReceived = 0 }) => sum + bytesReceived, 0);
    });
  const firstMs = await page.evaluate(() => (globalThis as unknown as { firstPictureMs: number }).firstPictureMs);
  return { page, firstMs, bytes: async () => socketBytes + (await peerBytes()) };
}

async function whileWatched(scene: Scene, scale: Scale): Promise<Row[]> {
  const { way, rest, workerPid } = scene;
  const { path } = await open(scene, "");
  const seconds = scale.of(15, 5);
  const idle = await cpuOver(workerPid, seconds);
  const { page, bytes } = await watch(scene, path);
  await readClock(page);
  await delay(settle.stream);

  await takeViewerTimes(page);
  const bytesBefore = await bytes();
  const used = await cpuOver(workerPid, seconds);
  const megabits = (((await bytes()) - bytesBefore) * 8) / 1e6 / used.seconds;
  const { ages, undecodable } = await takeViewerTimes(page);

  await page.getByRole("button", { name: "Take control" }).click();
  await page.getByRole("button", { name: "Hand back" }).waitFor();
  const presses = scale.of(60, 15);
  const busy = await busyWhile(() => pressSome(page, presses));
  const { answers } = await takeViewerTimes(page);
  await page.context().close();
  await rest(path, undefined, { method: "DELETE" });

  const rate = ages.length / used.seconds;
  const isJudged = way === "LiveKit";
  const judge = (percent: number, text: string) =>
    percent > maxBusyPercent ? `VOID: ${percent.toFixed(0)} % of the machine was busy` : isJudged ? text : "";
  const row = (what: string, ours: string, verdict: string, bare = ""): Row => {
    return { what: `${way}: ${what}`, ours, bare, verdict };
  };
  return [
    row("painted to read", spread(ages), judge(used.busy, boundVerdict(median(ages), bars.glassMs, "ms (p50)"))),
    row("press to read", spread(answers), judge(busy, boundVerdict(median(answers), bars.inputMs, "ms (p50)"))),
    row(
      `pictures a second, ${undecodable} undecodable`,
      rate.toFixed(1),
      judge(used.busy, atLeastVerdict(rate, bars.perSecond)),
    ),
    row(
      "cores of the worker and its browsers; unwatched",
      used.cores.toFixed(2),
      judge(used.busy, boundVerdict(used.cores, bars.cores, "cores")),
      idle.cores.toFixed(2),
    ),
    row("to the viewer", `${megabits.toFixed(1)} Mbit/s`, `${used.busy.toFixed(0)} % of the machine was busy`),
  ];
}

async function pressSome(page: Page, count: number): Promise<void> {
  for (let pressed = 1; pressed <= count; pressed += 1) {
    const { x, y } = await windowPoint(page, { x: 640, y: 400 });
    await page.mouse.click(x, y);
    await page.waitForFunction(
      (wanted) => (globalThis as unknown as { sight: { answers: number[] } }).sight.answers.length >= wanted,
      pressed,
    );
    // Random delays, so that presses are not aligned with frames.
    await delay(40 + 70 * Math.random());
  }
}

/** Compares pairs of idle sessions, one of which had a viewer. The difference is the cost that remains. */
async function onceLeft(scene: Scene, scale: Scale): Promise<Row[]> {
  const firsts: number[] = [];
  const cpu: number[] = [];
  const memory: number[] = [];
  const processes: number[] = [];
  for (let round = scale.of(5, 1); round > 0; round -= 1) {
    const watched = await open(scene, "?still");
    const never = await open(scene, "?still");
    const { page, firstMs } = await watch(scene, watched.path);
    firsts.push(firstMs);
    await delay(settle.stream);
    await page.context().close();
    await delay(settle.left);
    const both = [watched.pid, never.pid];
    const before = both.map(treeCpuMs);
    const beganAt = performance.now();
    await delay(10_000);
    const took = performance.now() - beganAt;
    const [ours = 0, bare = 0] = both.map((pid, index) => ((treeCpuMs(pid) - (before[index] ?? 0)) * 100) / took);
    cpu.push(ours - bare);
    memory.push((treePssBytes(watched.pid) - treePssBytes(never.pid)) / 2 ** 20);
    processes.push(readTree(watched.pid).length - readTree(never.pid).length);
    for (const { path } of [watched, never]) await scene.rest(path, undefined, { method: "DELETE" });
  }
  const what = `${scene.way}: 15 s after the viewer has left, beside one never watched`;
  const row = (unit: string, values: readonly number[], bar: number): Row => ({
    what: `${what}, ${unit}`,
    bare: "",
    ours: `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)} to ${percentile(values, 1).toFixed(1)})`,
    verdict: boundVerdict(median(values), bar, "more"),
  });
  return [
    {
      what: `${scene.way}: from the opening of a link to its first picture`,
      ours: spread(firsts),
      bare: "",
      verdict: boundVerdict(median(firsts), bars.firstMs, "ms (p50)"),
    },
    row("percent of a core", cpu, bars.idlePercent),
    row("MiB", memory, bars.idleMiB),
    row("processes", processes, 0),
  ];
}

/** Returns the machine load in percent during an operation. */
async function busyWhile(work: () => Promise<unknown>): Promise<number> {
  const [beganAt, before] = [performance.now(), hostBusyMs()];
  await work();
  return ((hostBusyMs() - before) * 100) / (performance.now() - beganAt) / availableParallelism();
}

/** Measures the cores used by a process tree for some seconds, and the machine load. */
async function cpuOver(pid: number, seconds: number): Promise<{ cores: number; busy: number; seconds: number }> {
  const [beganAt, before] = [performance.now(), treeCpuMs(pid)];
  const busy = await busyWhile(() => delay(seconds * 1_000));
  const took = performance.now() - beganAt;
  return { cores: (treeCpuMs(pid) - before) / took, busy, seconds: took / 1_000 };
}

import type { Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { pssBytes } from "../../tools/bench/processes.ts";
import { median } from "../../tools/bench/samples.ts";
import { BareClient, type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { InputSite } from "../support/input-site.ts";
import { LiveClient } from "../support/live-client.ts";
import { openLink, takeControl, windowPoint } from "../support/live-viewer.ts";
import { sceneMs, startLiveKitScene, testLive } from "../support/livekit-scene.ts";
import type { Service } from "../support/service.ts";
import { openSlowLink } from "../support/slow-link.ts";

/** Milliseconds without the slow viewer at the start. */
const aloneMs = 30_000;

const minutes = Number(process.env.MINUTES ?? 10);

/** Bytes, fewer than the slow viewer's unsent pictures in two minutes. */
const maxGrowth = 24 * 2 ** 20;

const pollOptions = { timeout: 60_000 };

let scene: OwnCdpScene;
beforeAll(async () => {
  scene = await startCdpScene();
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

test(
  `a viewer at 100 kbit/s uses no growing memory and delays no others for ${minutes} minutes`,
  async () => {
    const session = await scene.open();
    await scene.rest(`${session}/navigate`, { url: scene.site.url("/noisy.html") });
    const { body: link } = await scene.rest(`${session}/view-links`, { control: true });
    const key = new URL(link.url).hash.slice(1);
    const memory = watchMemory(scene.service);
    await using line = await openSlowLink(Number(new URL(scene.service.url).port), 0, 12_500);
    using slow = await LiveClient.join(`http://127.0.0.1:${line.port}`, key);
    await slow.see();
    using brisk = await LiveClient.join(scene.service.url, key);
    await brisk.see();
    brisk.send({ take_control: {} });
    await brisk.receive(({ state }) => state?.control.state === "human_control");

    let [pressed, seenByBrisk, seenBySlow, bytes] = [0, 0, 0, 0];
    for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
      const at = { x: 10 + (pressed % 500), y: 300 };
      brisk.send({ input: { events: ["pointer_down", "pointer_up"].map((kind) => ({ kind, ...at })) } });
      pressed += 1;
      await brisk.receive(({ input }) => input?.accepted === 2 * pressed);
      const before = brisk.frames.at(-1)?.sequence ?? 0n;
      await brisk.see(({ sequence }) => sequence >= before + 10n);
      memory.look();
      for (const { data } of brisk.frames.splice(0, brisk.frames.length - 1)) {
        seenByBrisk += 1;
        bytes += data.length;
      }
      seenBySlow += slow.frames.splice(0).length;
      brisk.received.splice(0, brisk.received.length - 1);
    }
    const growth = memory.growth();
    console.log({ seenByBrisk, seenBySlow, bytes, ...growth });
    expect(seenBySlow).toBeGreaterThan(0);
    expect(seenBySlow).toBeLessThan(seenByBrisk / 2);
    expect(bytes).toBeGreaterThan((minutes / 2) * maxGrowth);
    expect(Math.max(growth.gateway, growth.worker)).toBeLessThan(maxGrowth);
    await scene.rest(session, undefined, { method: "DELETE" });
  },
  minutes * 60_000 + 120_000,
);

testLive(
  `a viewer with media over TCP at 100 kbit/s for ${minutes} minutes uses no growing memory and delays no others`,
  async () => {
    await using scene = await startLiveKitScene();
    await using site = await InputSite.start();
    const session = await scene.open({ runtime: "chromium" });
    await scene.rest(`${session}/navigate`, { url: site.url });
    using client = await BareClient.connect(await scene.cdpUrl(session));
    await client.send("Runtime.evaluate", { expression: `(${makeNoise})()` }, await client.attach());
    const { body: link } = await scene.rest(`${session}/view-links`, { control: true });
    const { hash, port } = new URL(link.url);
    const { page: brisk } = await openLink(scene.browser, link.url);
    await expect.poll(() => videoOf(brisk), pollOptions).toBeGreaterThan(0);
    await takeControl(brisk);
    const press = { times: 0, ms: [] as number[], pictureMs: [] as number[] };
    const openInControl = async () => {
      const { x, y } = await windowPoint(brisk, { x: 500 + (press.times % 300), y: 600 });
      press.times += 1;
      const before = performance.now();
      await brisk.mouse.click(x, y);
      const isPressed = () => site.told.filter((told) => told.startsWith("mouseup")).length === press.times;
      expect(await waitUntil(isPressed, { timeout: 20_000, every: 1 })).toBe(true);
      press.ms.push(performance.now() - before);
      const seen = await videoOf(brisk);
      const since = performance.now();
      await expect.poll(() => videoOf(brisk), { ...pollOptions, interval: 10 }).toBeGreaterThanOrEqual(seen + 10);
      press.pictureMs.push((performance.now() - since) / 10);
    };
    const figures = () => ({
      rounds: press.ms.length,
      inputMs: Math.round(median(press.ms.splice(0))),
      pictureMs: Math.round(median(press.pictureMs.splice(0))),
    });
    for (const end = Date.now() + aloneMs; Date.now() < end; ) await openInControl();
    const alone = figures();

    await using line = await openSlowLink(Number(port), 0, 12_500);
    await using mediaLine = await openSlowLink(scene.server.tcpPort, 0, 12_500);
    const slowUrl = `http://127.0.0.1:${line.port}/live${hash}`;
    const { page: slow } = await openLink(scene.browser, slowUrl, {}, async (page) => {
      await page.addInitScript(leadBy, { from: scene.server.tcpPort, to: mediaLine.port });
      // The page's scripts would occupy the slow connection for a minute.
      await page.route("**/live/**", async (route) => {
        const url = new URL(new URL(route.request().url()).pathname, scene.service.url).href;
        await route.fulfill({ response: await route.fetch({ url }) });
      });
    });
    const memory = watchMemory(scene.service);
    let slowVideo = 0;
    for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
      await openInControl();
      memory.look();
      slowVideo = Math.max(slowVideo, await videoOf(slow));
    }
    const growth = memory.growth();
    console.log({ alone, beside: figures(), slowVideo, mediaBytes: mediaLine.carried, ...growth });
    expect(slowVideo).toBeGreaterThan(0);
    expect(mediaLine.carried).toBeGreaterThan(minutes * 100_000);
    expect(Math.max(growth.gateway, growth.worker)).toBeLessThan(maxGrowth);
    await Promise.all([slow, brisk].map((page) => page.context().close()));
    await scene.rest(session, undefined, { method: "DELETE" });
  },
  sceneMs + minutes * 60_000 + 120_000,
);

/** Number of pictures that a viewer received over LiveKit, 0 without video. */
async function videoOf(page: Page): Promise<number> {
  const sequence = await page.locator("canvas").getAttribute("data-sequence");
  return Number(/^video (\d+)/.exec(sequence ?? "")?.[1] ?? 0);
}

/** Runs in the session's page: animates a picture that cannot be compressed. */
function makeNoise(): void {
  const canvas = Object.assign(document.createElement("canvas"), { width: 400, height: 240 });
  document.body.append(canvas);
  const pen = canvas.getContext("2d");
  const noise = pen?.createImageData(400, 240);
  const step = () => {
    if (!noise) return;
    for (let at = 0; at < noise.data.length; at += 1) noise.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
    pen?.putImageData(noise, 0, 0);
    requestAnimationFrame(step);
  };
  step();
}

/** Runs in a viewer's page: leaves one ICE candidate, TCP at another port than the media server's. */
function leadBy({ from, to }: { from: number; to: number }): void {
  const led = (line: string): string | undefined => {
    const fields = line.split(" ");
    if (fields[2]?.toLowerCase() !== "tcp") return undefined;
    return fields.map((field) => (field === String(from) ? String(to) : field)).join(" ");
  };
  const { prototype } = RTCPeerConnection;
  const { addIceCandidate, setRemoteDescription } = prototype;
  prototype.addIceCandidate = async function (init) {
    const candidate = init?.candidate ? led(init.candidate) : init?.candidate;
    if (candidate !== undefined) await Reflect.apply(addIceCandidate, this, [{ ...init, candidate }]);
  };
  prototype.setRemoteDescription = function ({ type, sdp = "" }) {
    const lines = sdp.split("\r\n").flatMap((line) => (line.startsWith("a=candidate:") ? (led(line) ?? []) : [line]));
    return Reflect.apply(setRemoteDescription, this, [{ type, sdp: lines.join("\r\n") }]);
  };
}

/** Samples the memory of a service's gateway and worker. */
function watchMemory(service: Service) {
  const [gateway, worker] = [service.pidOf("gateway"), service.pidOf("worker")];
  const seen = { gateway: [] as number[], worker: [] as number[] };
  /** Skips the first fifth, which contains one-time growth. */
  const growthOf = (bytes: readonly number[]): number => {
    const fifth = Math.ceil(bytes.length / 5);
    return median(bytes.slice(-fifth)) - median(bytes.slice(fifth, 2 * fifth));
  };
  return {
    look(): void {
      seen.gateway.push(pssBytes(gateway));
      seen.worker.push(pssBytes(worker));
    },
    growth: () => ({ gateway: growthOf(seen.gateway), worker: growthOf(seen.worker) }),
  };
}

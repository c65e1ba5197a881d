import { RoomServiceClient } from "livekit-server-sdk";
import type { Browser, Page } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { BareClient, type LendScene, startLendScene } from "../support/lend-scene.ts";
import { openLink, says } from "../support/live-viewer.ts";
import { go } from "../support/livekit-build.ts";
import { LiveKitServer } from "../support/livekit-server.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { descendantsOf, listProcesses } from "../support/process-list.ts";

// Whoever has no Go is told so once, and CI fails.
const isServed = go !== undefined || process.env.CI !== undefined;
if (!isServed) console.warn("There is no Go to build LiveKit with: its tests do not run.");
const testLive = test.runIf(isServed);

let server: LiveKitServer;
let scene: LendScene;
let browser: Browser;
let rooms: RoomServiceClient;
let session: string;
beforeAll(async () => {
  if (!isServed) return;
  server = await LiveKitServer.start();
  rooms = new RoomServiceClient(server.url.replace("ws", "http"), server.key, server.secret);
  [scene, browser] = await Promise.all([
    startLendScene({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "1", ...server.env }),
    launchPlainBrowser("--allow-loopback-in-peer-connection"),
  ]);
}, 1_500_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
}, 60_000);
beforeEach(async () => {
  if (!isServed) return;
  session = await scene.open({ runtime: "chromium" });
  const opened = session;
  onTestFinished(async () => void (await scene.rest(opened, undefined, { method: "DELETE" })));
  await navigate(pageOf("red"));
});

const colours = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255], black: [0, 0, 0] };
type Colour = keyof typeof colours;

const patient = { timeout: 60_000 };
const pageOf = (query: string) => scene.site.url(`/colours.html?${query}`);
const roomName = () => `bs_${session.split("/").at(-1)}`;

const navigate = async (url: string) =>
  expect(await scene.rest(`${session}/navigate`, { url })).toMatchObject({ status: 200 });

const interact = async (action: object) =>
  expect(await scene.rest(`${session}/interact`, { action })).toMatchObject({ status: 200 });

async function openViewer(): Promise<{ page: Page; linkId: string; faults: readonly string[] }> {
  const { body } = await scene.rest(`${session}/view-links`, {});
  const { page, faults } = await openLink(browser, body.url);
  onTestFinished(() => page.context().close());
  return { page, faults, linkId: body.id };
}

/** The colour of the picture's middle, by video or by frames. Neither is exact. */
function colourOf(page: Page): Promise<string> {
  return page.evaluate((known) => {
    const picture = document.querySelector("canvas");
    const { data = [] } = picture?.getContext("2d")?.getImageData(picture.width / 2, picture.height / 2, 1, 1) ?? {};
    const isLike = (colour: number[]) => colour.every((part, index) => Math.abs(part - (data[index] ?? 0)) < 40);
    const found = Object.entries(known).find(([, colour]) => isLike(colour))?.[0] ?? [...data].join();
    return `${found} by ${picture?.dataset.sequence?.startsWith("video") ? "video" : "frames"}`;
  }, colours);
}

const sees = (page: Page, colour: Colour, by: "video" | "frames") =>
  expect.poll(() => colourOf(page), patient).toBe(`${colour} by ${by}`);

testLive(
  "two viewers see a session over LiveKit: its page, another tab, another origin, another size, and a page after a crash",
  async () => {
    const viewers = await Promise.all([openViewer(), openViewer()]);
    const all = (check: (page: Page) => Promise<unknown>) => Promise.all(viewers.map(({ page }) => check(page)));
    await all((page) => sees(page, "red", "video"));

    await interact({ kind: "tap", selector: "#open" });
    await all((page) => sees(page, "blue", "video"));
    await interact({ kind: "activate_page", page_id: "page_1" });
    await all((page) => sees(page, "red", "video"));

    await navigate(pageOf("lime").replace("127.0.0.1", "localhost"));
    await all((page) => sees(page, "lime", "video"));
    await navigate(pageOf("red-black"));
    await all((page) => sees(page, "black", "video"));

    await interact({ kind: "close_page", page_id: "page_2" });
    using client = await BareClient.connect(await scene.cdpUrl(session));
    const attached = await client.attach();
    const size = { width: 800, height: 600, deviceScaleFactor: 1, mobile: false };
    await client.send("Emulation.setDeviceMetricsOverride", size, attached);
    await all((page) =>
      expect.poll(() => page.evaluate(() => document.querySelector("canvas")?.width), patient).toBe(800),
    );

    client.socket.send(JSON.stringify({ id: 99, method: "Page.crash", sessionId: attached }));
    await all((page) => says(page, "notice", "crashed"));
    await navigate(pageOf("blue"));
    await all((page) => sees(page, "blue", "video"));
    expect(viewers.flatMap(({ faults }) => faults)).toEqual([]);
  },
  240_000,
);

testLive(
  "viewers see frames while LiveKit is gone, and video when it is back",
  async () => {
    const { page } = await openViewer();
    await sees(page, "red", "video");
    await server.kill();
    onTestFinished(() => server.restart());
    await navigate(pageOf("blue"));
    await sees(page, "blue", "frames");
    await server.restart();
    onTestFinished(() => server.kill());
    await navigate(pageOf("lime"));
    await sees(page, "lime", "video");
  },
  240_000,
);

testLive(
  "no page reaches LiveKit at its own addresses, and no CDP client sees what publishes",
  async () => {
    using client = await BareClient.connect(await scene.cdpUrl(session));
    const everything = { filter: [{}] };
    await client.send("Target.setDiscoverTargets", { discover: true, ...everything });
    const auto = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    await client.send("Target.setAutoAttach", { ...auto, filter: [{ type: "page", exclude: true }, {}] });
    const { page } = await openViewer();
    await sees(page, "red", "video");

    const { result } = await client.send("Target.getTargets", everything);
    expect(result.targetInfos.map(({ type }: { type: string }) => type)).toContain("page");
    expect(JSON.stringify([result, client.heard])).not.toMatch(/chrome-extension|"type":"other"/);
    const others = await connectPuppeteer({ browserWSEndpoint: await scene.cdpUrl(session), defaultViewport: null });
    expect((await others.pages()).map((each) => each.url())).toEqual([pageOf("red")]);
    await others.disconnect();

    for (const port of [new URL(server.url).port, server.tcpPort]) {
      for (const host of ["127.0.0.1", "localhost"]) {
        const { status, body } = await scene.rest(`${session}/navigate`, { url: `http://${host}:${port}/` });
        expect({ host, port, status, blocked: body.blocked_by }).toMatchObject({ blocked: "egress" });
      }
    }
  },
  120_000,
);

testLive(
  "who may not watch any more is removed, the session's end closes its room, and its room admits nobody to publish",
  async () => {
    const [first, second] = await Promise.all([openViewer(), openViewer()]);
    await Promise.all([first, second].map(({ page }) => sees(page, "red", "video")));
    const present = async () =>
      (await rooms.listParticipants(roomName())).map(({ identity }) => identity.split(":")[0]);
    expect((await present()).toSorted()).toEqual(["viewer", "viewer", "worker"]);
    const permissions = (await rooms.listParticipants(roomName())).map(({ identity, permission }) => ({
      who: identity.split(":")[0],
      ...{ publishes: permission?.canPublish, speaks: permission?.canPublishData, hears: permission?.canSubscribe },
    }));
    expect(permissions).toContainEqual({ who: "viewer", publishes: false, speaks: false, hears: true });
    expect(permissions).toContainEqual({ who: "worker", publishes: true, speaks: false, hears: false });

    expect(await scene.rest(`${session}/view-links/${first.linkId}`, undefined, { method: "DELETE" })).toMatchObject({
      status: 204,
    });
    await expect.poll(async () => (await present()).toSorted(), patient).toEqual(["viewer", "worker"]);
    await sees(second.page, "red", "video");

    await scene.rest(session, undefined, { method: "DELETE" });
    await says(second.page, "notice", "The session has ended");
    const names = async () => (await rooms.listRooms()).map(({ name }) => name);
    await expect.poll(names, patient).not.toContain(roomName());
  },
  120_000,
);

testLive(
  "nothing is left of the capture when the last viewer has left",
  async () => {
    const { page } = await openViewer();
    await sees(page, "red", "video");
    expect(captures()).toBe(1);
    await page.context().close();
    const isAlone = async () => (await rooms.listParticipants(roomName()).catch(() => [])).length === 0;
    expect(await waitUntil(isAlone, { timeout: 60_000, every: 200 })).toBe(true);
    await expect.poll(captures, patient).toBe(0);
  },
  120_000,
);

/** Renderers of the service's browsers that have a page of an extension. */
function captures(): number {
  const all = listProcesses();
  const worker = all.find(
    ({ dataDir, command }) => dataDir === scene.service.dataDir && command.includes("workers/main.ts"),
  );
  const own = worker ? descendantsOf(worker.pid, all) : [];
  return own.filter(({ command }) => command.includes("--extension-process")).length;
}

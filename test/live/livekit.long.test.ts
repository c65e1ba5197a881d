import { RoomServiceClient } from "livekit-server-sdk";
import type { Browser } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { BareClient, type LendScene, startLendScene } from "../support/lend-scene.ts";
import { sees, sightsOf } from "../support/live-sights.ts";
import { type LiveViewer, openLink, says } from "../support/live-viewer.ts";
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
let sights: ReturnType<typeof sightsOf>;
beforeAll(async () => {
  if (!isServed) return;
  server = await LiveKitServer.start();
  rooms = new RoomServiceClient(server.url.replace("ws", "http"), server.key, server.secret);
  [scene, browser] = await Promise.all([
    startLendScene({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "1", ...server.env }),
    launchPlainBrowser("--allow-loopback-in-peer-connection"),
  ]);
  sights = sightsOf(scene);
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
  await sights.navigate(session, sights.pageOf("red"));
});

const patient = { timeout: 60_000 };
const roomName = () => `bs_${session.split("/").at(-1)}`;

async function openViewer(): Promise<LiveViewer & { readonly linkId: string }> {
  const { body } = await scene.rest(`${session}/view-links`, {});
  const { page, faults } = await openLink(browser, body.url);
  onTestFinished(() => page.context().close());
  return { page, faults, linkId: body.id };
}

testLive(
  "two viewers see a session over LiveKit: its page, another tab, another origin, another size, and a page after a crash",
  async () => {
    const viewers = await Promise.all([openViewer(), openViewer()]);
    await Promise.all(viewers.map(({ page }) => sees(page, "red", "video")));
    await sights.showAll(session, viewers, "video");
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
    await sights.navigate(session, sights.pageOf("blue"));
    await sees(page, "blue", "frames");
    await server.restart();
    onTestFinished(() => server.kill());
    await sights.navigate(session, sights.pageOf("lime"));
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
    expect((await others.pages()).map((each) => each.url())).toEqual([sights.pageOf("red")]);
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
  "a media token shows an agent's session to a client of LiveKit, until the bearer that has asked ends",
  async () => {
    const agents = { scopes: ["agent_sessions:read", "agent_sessions:write"], name: "watcher" };
    const { body: key } = await scene.rest("/v1/api-keys", agents);
    const bearer = { headers: { authorization: `Bearer ${key.key}` } };
    const askFor = async (runsIn: string) => {
      const { body } = await scene.rest("/v1/agent-sessions", { session_id: runsIn.split("/").at(-1) });
      return scene.rest(`/v1/agent-sessions/${body.id}/media-token`, { client_id: "wall" }, bearer);
    };
    const { status, body: token } = await askFor(session);
    expect([status, token]).toMatchObject([200, { url: server.url, room: roomName() }]);
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${scene.service.url}/live`);
    await page.addScriptTag({ url: "/live/livekit.js" });
    await page.evaluate(({ url, token }) => {
      const canvas = document.querySelector("canvas");
      const onVideo = (video: HTMLVideoElement) => {
        const paint = () => {
          video.requestVideoFrameCallback(paint);
          Object.assign(canvas ?? {}, { width: video.videoWidth, height: video.videoHeight });
          Object.assign(canvas?.dataset ?? {}, { sequence: "video" });
          canvas?.getContext("2d")?.drawImage(video, 0, 0);
        };
        video.requestVideoFrameCallback(paint);
      };
      globalThis.joinRoom?.(url, token, { onVideo, onGone: () => undefined });
    }, token);
    await sees(page, "red", "video");
    const { page: other } = await openViewer();
    await says(other, "viewers", "wall");

    await scene.rest(`/v1/api-keys/${key.id}`, undefined, { method: "DELETE" });
    await says(other, "viewers", "1 watching");
    const present = async () => (await rooms.listParticipants(roomName())).map(({ identity }) => identity);
    await expect.poll(present, patient).not.toContain(token.identity);
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

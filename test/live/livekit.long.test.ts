import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createServer } from "node:tls";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { LiveKitSignal } from "../../workers/live/livekit-signal.ts";
import { startCdpScene } from "../support/cdp-proxy-scene.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { Deployment } from "../support/deployment.ts";
import { LiveClient } from "../support/live-client.ts";
import { sees } from "../support/live-sights.ts";
import { handBack, openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import {
  isServed,
  type LiveKitScene,
  launchViewers,
  roomOf,
  sceneMs,
  startLiveKitScene,
  testLive,
} from "../support/livekit-scene.ts";
import { descendantsOf, listProcesses } from "../support/process-list.ts";

let scene: LiveKitScene;
let session: string;
beforeAll(async () => {
  if (isServed) scene = await startLiveKitScene();
}, sceneMs);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);
beforeEach(async () => {
  if (isServed) session = await scene.openRed();
});

const pollOptions = { timeout: 60_000 };
const minute = 60_000;

testLive(
  "a watched page cannot connect to any address of LiveKit, even with a token",
  async () => {
    const { page: viewer } = await scene.watch(session);
    await sees(viewer, "red", "video");
    const { body: link } = await scene.rest(`${session}/view-links`, {});
    using guest = await LiveClient.join(scene.service.url, new URL(link.url).hash.slice(1), { hidden: true });
    guest.send({ subscribe: { media: "livekit" } });
    const { room } = await guest.receive((message) => message.room);
    const outside = await scene.browser.newPage();
    onTestFinished(() => outside.close());
    await outside.goto(scene.site.url("/plain.html"));
    const { port } = new URL(scene.server.url);
    const hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"];
    // Shows that a refusal is no outage: clients outside of the browser may use the token.
    expect(await reach(outside, hosts, port, room.token)).toEqual(hosts.flatMap(() => ["OK", "open"]));
    const inside = await scene.pageOf(session);
    expect(await reach(inside, hosts, port, room.token)).toEqual(hosts.flatMap(() => ["refused", "refused"]));
    for (const each of [port, scene.server.tcpPort]) {
      for (const host of hosts) {
        const { status, body } = await scene.rest(`${session}/navigate`, { url: `http://${host}:${each}/` });
        expect({ host, each, status, blocked: body.blocked_by }).toMatchObject({ blocked: "egress" });
      }
    }
    await scene.sights.navigate(session, scene.sights.pageOf("blue"));
    await sees(viewer, "blue", "video");
  },
  120_000,
);

testLive(
  "two viewers see over LiveKit a page, another tab, another origin, another size, and a page after a crash",
  async () => {
    const viewers = await Promise.all([scene.watch(session), scene.watch(session)]);
    await Promise.all(viewers.map(({ page }) => sees(page, "red", "video")));
    await scene.sights.showAll(session, viewers, "video");
  },
  240_000,
);

testLive(
  "control changes from one viewer to another, and both see the effects of its use",
  async () => {
    const [{ page: ada }, { page: ben }] = await Promise.all([
      scene.watch(session, { control: true, name: "Ada" }),
      scene.watch(session, { control: true, name: "Ben" }),
    ]);
    const both = (check: (page: Page) => Promise<unknown>) => Promise.all([ada, ben].map(check));
    await both((page) => sees(page, "red", "video"));
    const clickLink = async (page: Page) => {
      const { x, y } = await windowPoint(page, { x: 100, y: 20 });
      await page.mouse.click(x, y);
    };

    await takeControl(ada);
    await says(ben, "control-status", "Ada has control");
    await ben.getByRole("button", { name: "Take control" }).click();
    await says(ben, "notice", "Ada has control at the moment.");
    await clickLink(ben);
    await clickLink(ada);
    await both((page) => sees(page, "blue", "video"));
    const { body } = await scene.rest(`${session}/state`);
    expect(body.pages.map(({ title }: { title: string }) => title)).toEqual(["red", "blue"]);

    await handBack(ada);
    await takeControl(ben);
    await says(ada, "control-status", "Ben has control");
    await ben.getByRole("textbox", { name: "Address" }).fill(scene.sights.pageOf("lime"));
    await ben.keyboard.press("Enter");
    await both((page) => sees(page, "lime", "video"));
    await handBack(ben);
  },
  120_000,
);

testLive(
  "viewers of a restarted or killed gateway resume video, and viewers of another one keep it",
  async () => {
    const media = { ...scene.server.env, EGRESS_ALLOW: "127.0.0.0/8" };
    await using deployment = await Deployment.start({
      workers: 1,
      slots: 1,
      gatewayEnv: media,
      workerEnv: { EGRESS_ALLOW: "127.0.0.0/8", LIVEKIT_URL: scene.server.url, CLOSE_AT_CPU: "100" },
    });
    const [ending, other] = [deployment.gateway(0), deployment.gateway(1)];
    const { body } = await other.rest("/v1/sessions", { runtime: "chromium" });
    const path = `/v1/sessions/${body.id}`;
    const show = async (colour: string) =>
      expect(await other.rest(`${path}/navigate`, { url: scene.sights.pageOf(colour) })).toMatchObject({ status: 200 });
    await show("red");
    const { body: link } = await other.rest(`${path}/view-links`, {});
    const [ada, ben] = await Promise.all(
      [ending, other].map(async ({ url }) => {
        const { page } = await openLink(scene.browser, `${url}/live${new URL(link.url).hash}`);
        onTestFinished(() => page.context().close());
        return page;
      }),
    );
    if (!ada || !ben) throw new Error("two are to watch");
    const present = () => scene.present(path);
    await Promise.all([ada, ben].map((page) => sees(page, "red", "video")));
    for (const end of ["stop", "kill"] as const) {
      await ending[end]();
      await says(ada, "status", "Connecting");
      await show("blue");
      await sees(ben, "blue", "video");
      await ending.start();
      await says(ada, "status", "Live");
      await sees(ada, "blue", "video");
      await show("red");
      await Promise.all([ada, ben].map((page) => sees(page, "red", "video")));
      await expect.poll(present, pollOptions).toEqual(["viewer", "viewer", "worker"]);
    }
  },
  240_000,
);

testLive(
  "a viewer whose link has expired is notified and removed from the room, and others continue",
  async () => {
    const short = await scene.watch(session, { expires_in_seconds: 60 });
    const { page: other } = await scene.watch(session);
    await Promise.all([short.page, other].map((page) => sees(page, "red", "video")));
    await says(other, "viewers", "2 watching");
    await short.page.getByText("This link has expired").waitFor({ timeout: 2 * minute });
    await expect.poll(() => scene.present(session), pollOptions).toEqual(["viewer", "worker"]);
    await scene.sights.navigate(session, scene.sights.pageOf("blue"));
    await sees(other, "blue", "video");
    await short.page.reload();
    await says(short.page, "notice", "This link has expired");
    expect(await scene.present(session)).toEqual(["viewer", "worker"]);
  },
  240_000,
);

testLive(
  "a link admits only to the room of its own session",
  async () => {
    const second = await scene.openRed();
    await scene.sights.navigate(second, scene.sights.pageOf("lime"));
    const [mine, theirs] = await Promise.all([scene.watch(session), scene.watch(second)]);
    await Promise.all([sees(mine.page, "red", "video"), sees(theirs.page, "lime", "video")]);
    for (const each of [session, second]) expect(await scene.present(each)).toEqual(["viewer", "worker"]);

    const { body: link } = await scene.rest(`${session}/view-links`, {});
    const key = new URL(link.url).hash.slice(1);
    using stranger = await LiveClient.join(scene.service.url, key, { session_id: second.split("/").at(-1) });
    stranger.send({ subscribe: { media: "livekit" } });
    expect(await stranger.closed).toEqual({ code: 1008, reason: "not-found" });
    expect(stranger.received.filter(({ room }) => room)).toEqual([]);
    // A token for a room names that room.
    using guest = await LiveClient.join(scene.service.url, key);
    guest.send({ subscribe: { media: "livekit" } });
    const { room } = await guest.receive((message) => message.room);
    const [, claims = ""] = room.token.split(".");
    expect(JSON.parse(Buffer.from(claims, "base64url").toString()).video).toMatchObject({ room: roomOf(session) });
    expect(await scene.present(second)).toEqual(["viewer", "worker"]);
  },
  120_000,
);

testLive(
  "a viewer that sleeps for a minute delays no others, and resumes video when it wakes",
  async () => {
    const sleeper = await launchApart();
    onTestFinished(() => sleeper.browser.close());
    const [{ page: asleep }, { page: frozen }, { page: awake }] = await Promise.all([
      scene.watch(session, {}, sleeper.browser),
      scene.watch(session),
      scene.watch(session),
    ]);
    const all = (check: (page: Page) => Promise<unknown>) => Promise.all([asleep, frozen, awake].map(check));
    await all((page) => sees(page, "red", "video"));
    const lifecycle = await frozen.context().newCDPSession(frozen);
    await lifecycle.send("Page.setWebLifecycleState", { state: "frozen" });
    sleeper.signal("SIGSTOP");
    onTestFinished(() => sleeper.signal("SIGCONT"));
    await scene.sights.navigate(session, scene.sights.pageOf("blue"));
    await sees(awake, "blue", "video");
    // The sleep lasts for a fixed time.
    await delay(minute);
    await scene.sights.navigate(session, scene.sights.pageOf("lime"));
    await sees(awake, "lime", "video");
    sleeper.signal("SIGCONT");
    await lifecycle.send("Page.setWebLifecycleState", { state: "active" });
    await all((page) => sees(page, "lime", "video"));
    await all((page) => says(page, "status", "Live"));
  },
  240_000,
);

testLive(
  "a LiveKit server behind TLS is used exactly when its certificate is trusted",
  async () => {
    using authority = new CertificateAuthority();
    const { cert, key, ca } = authority.issue("livekit");
    const port = Number(new URL(scene.server.url).port);
    const front = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (client) => {
      const server = connect(port, "127.0.0.1");
      for (const socket of [client, server]) socket.on("error", () => undefined);
      client.pipe(server).pipe(client);
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void front.close());
    await once(front, "listening");
    const url = `wss://127.0.0.1:${(front.address() as AddressInfo).port}`;

    const silent = { onAnswer() {}, onCandidate() {}, onPublished() {}, onToken() {} };
    const joined = LiveKitSignal.connect(url, "a token that is not to be told", silent);
    await expect(joined).rejects.toThrow("unable to verify the first certificate");

    for (const [by, trust] of [
      ["frames", {}],
      ["video", { NODE_EXTRA_CA_CERTS: ca }],
    ] as const) {
      const media = { ...scene.server.env, LIVEKIT_URL: url, ...trust };
      await using other = await startCdpScene({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "1", ...media });
      const path = await other.open({ runtime: "chromium" });
      await other.rest(`${path}/navigate`, { url: scene.sights.pageOf("red") });
      const { body: link } = await other.rest(`${path}/view-links`, {});
      // The viewer's browser trusts the certificate in both cases.
      const { page } = await openLink(scene.browser, link.url, { ignoreHTTPSErrors: true });
      await sees(page, "red", by);
      expect(await scene.present(path).catch(() => [])).toEqual(by === "video" ? ["viewer", "worker"] : []);
      await page.context().close();
    }
  },
  120_000,
);

testLive(
  "viewers see frames during an outage of LiveKit, and video afterwards",
  async () => {
    const { page } = await scene.watch(session);
    await sees(page, "red", "video");
    await scene.server.kill();
    onTestFinished(() => scene.server.restart());
    await scene.sights.navigate(session, scene.sights.pageOf("blue"));
    await sees(page, "blue", "frames");
    await scene.server.restart();
    onTestFinished(() => scene.server.kill());
    await scene.sights.navigate(session, scene.sights.pageOf("lime"));
    await sees(page, "lime", "video");
  },
  240_000,
);

testLive(
  "a viewer without access is removed, the session's end closes its room, and the room admits no publishers",
  async () => {
    const [first, second] = await Promise.all([scene.watch(session), scene.watch(session)]);
    await Promise.all([first, second].map(({ page }) => sees(page, "red", "video")));
    const present = () => scene.present(session);
    expect(await present()).toEqual(["viewer", "viewer", "worker"]);
    const permissions = (await scene.rooms.listParticipants(roomOf(session))).map(({ identity, permission }) => ({
      who: identity.split(":")[0],
      publishes: permission?.canPublish,
      speaks: permission?.canPublishData,
      subscribes: permission?.canSubscribe,
    }));
    expect(permissions).toContainEqual({ who: "viewer", publishes: false, speaks: false, subscribes: true });
    expect(permissions).toContainEqual({ who: "worker", publishes: true, speaks: false, subscribes: false });

    expect(await scene.rest(`${session}/view-links/${first.linkId}`, undefined, { method: "DELETE" })).toMatchObject({
      status: 204,
    });
    await expect.poll(present, pollOptions).toEqual(["viewer", "worker"]);
    await sees(second.page, "red", "video");

    await scene.rest(session, undefined, { method: "DELETE" });
    await says(second.page, "notice", "The session has ended");
    const names = async () => (await scene.rooms.listRooms()).map(({ name }) => name);
    await expect.poll(names, pollOptions).not.toContain(roomOf(session));
  },
  120_000,
);

testLive(
  "a media token admits a LiveKit client to an agent's session until the requesting bearer ends",
  async () => {
    const agents = { scopes: ["agent_sessions:read", "agent_sessions:write"], name: "watcher" };
    const { body: key } = await scene.rest("/v1/api-keys", agents);
    const bearer = { headers: { authorization: `Bearer ${key.key}` } };
    const askFor = async (runsIn: string) => {
      const { body } = await scene.rest("/v1/agent-sessions", { session_id: runsIn.split("/").at(-1) });
      return scene.rest(`/v1/agent-sessions/${body.id}/media-token`, { client_id: "wall" }, bearer);
    };
    const { status, body: token } = await askFor(session);
    expect([status, token]).toMatchObject([200, { url: scene.server.url, room: roomOf(session) }]);
    const page = await scene.browser.newPage();
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
      globalThis.joinRoom?.(url, token, { onVideo, onDisconnected: () => undefined });
    }, token);
    await sees(page, "red", "video");
    const { page: other } = await scene.watch(session);
    await says(other, "viewers", "wall");

    await scene.rest(`/v1/api-keys/${key.id}`, undefined, { method: "DELETE" });
    await says(other, "viewers", "1 watching");
    const present = async () => (await scene.rooms.listParticipants(roomOf(session))).map(({ identity }) => identity);
    await expect.poll(present, pollOptions).not.toContain(token.identity);
  },
  120_000,
);

testLive(
  "the capture is removed completely after the last viewer has left",
  async () => {
    const { page } = await scene.watch(session);
    await sees(page, "red", "video");
    expect(captures()).toBe(1);
    await page.context().close();
    const isAlone = async () => (await scene.rooms.listParticipants(roomOf(session)).catch(() => [])).length === 0;
    expect(await waitUntil(isAlone, { timeout: 60_000, every: 200 })).toBe(true);
    await expect.poll(captures, pollOptions).toBe(0);
  },
  120_000,
);

/** Launches a viewers' browser whose processes can be stopped at once, as on a sleeping machine. */
async function launchApart(): Promise<{ readonly browser: Browser; signal(signal: NodeJS.Signals): void }> {
  const own = () => listProcesses().filter(({ parent }) => parent === process.pid);
  const before = new Set(own().map(({ pid }) => pid));
  const browser = await launchViewers();
  const roots = own().filter(({ pid }) => !before.has(pid));
  return {
    browser,
    signal(signal) {
      for (const { pid } of roots.flatMap((root) => [root, ...descendantsOf(root.pid)])) process.kill(pid, signal);
    },
  };
}

/** Number of the service's renderers with a page of an extension. */
const captures = (): number =>
  scene.processes().filter(({ command }) => command.includes("--extension-process")).length;

/** Results of a page's fetch from LiveKit's port at each host name, and of a join with a token. */
function reach(page: Page, hosts: readonly string[], port: string, token: string): Promise<string[]> {
  return page.evaluate(
    async ({ hosts, port, token }) => {
      const fetched = (host: string) =>
        fetch(`http://${host}:${port}/`).then(
          (response) => response.text(),
          () => "refused",
        );
      const joined = (host: string) =>
        new Promise<string>((resolve) => {
          const socket = new WebSocket(`ws://${host}:${port}/rtc?protocol=15&access_token=${token}`);
          socket.onopen = () => resolve("open");
          socket.onerror = () => resolve("refused");
        });
      const all: string[] = [];
      for (const host of hosts) all.push(await fetched(host), await joined(host));
      return all;
    },
    { hosts, port, token },
  );
}

import { RoomServiceClient } from "livekit-server-sdk";
import { type Browser, chromium, type Page } from "playwright";
import { onTestFinished, test } from "vitest";
import { type OwnCdpScene, startCdpScene } from "./cdp-proxy-scene.ts";
import { sightsOf } from "./live-sights.ts";
import { type LiveViewer, openLink } from "./live-viewer.ts";
import { go } from "./livekit-build.ts";
import { LiveKitServer } from "./livekit-server.ts";
import { launchPlainBrowser } from "./plain-browser.ts";
import { descendantsOf, type ListedProcess, listProcesses } from "./process-list.ts";

/** Whether LiveKit tests run. Without Go they are skipped with a warning, except in CI, where they fail. */
export const isServed = go !== undefined || process.env.CI !== undefined;
if (!isServed) console.warn("There is no Go to build LiveKit with: its tests do not run.");

/** Test that needs a LiveKit server. */
export const testLive = test.runIf(isServed);

/** Milliseconds for the start of a scene, including a build of the server. */
export const sceneMs = 1_500_000;

/** Viewer with the id of its link. */
export interface LinkedViewer extends LiveViewer {
  readonly linkId: string;
}

/** Service with a LiveKit server, and a browser for viewers. */
export interface LiveKitScene extends OwnCdpScene {
  readonly server: LiveKitServer;
  readonly browser: Browser;
  readonly rooms: RoomServiceClient;
  readonly sights: ReturnType<typeof sightsOf>;
  /** Opens a session with a red page until the end of the test. */
  openRed(): Promise<string>;
  /** Opens a link to a session until the end of the test, in the given browser or a shared one. */
  watch(session: string, link?: object, browser?: Browser): Promise<LinkedViewer>;
  /** Returns the page of a session, connected by Playwright over CDP until the end of the test. */
  pageOf(session: string): Promise<Page>;
  /** Returns the participants of a session's room by kind: `viewer` or `worker`. */
  present(session: string): Promise<string[]>;
  /** Processes of the worker, including its browsers. */
  processes(): ListedProcess[];
}

/** Returns the room of a session, given the session's path. */
export const roomOf = (session: string): string => `bs_${session.split("/").at(-1)}`;

/** Launches a browser for viewers. The LiveKit server of the test has a loopback address. */
export const launchViewers = (): Promise<Browser> => launchPlainBrowser("--allow-loopback-in-peer-connection");

/** Starts a scene. `env` extends the service's environment. */
export async function startLiveKitScene(env: Record<string, string> = {}): Promise<LiveKitScene> {
  const server = await LiveKitServer.start();
  const rooms = new RoomServiceClient(server.url.replace("ws", "http"), server.key, server.secret);
  const [scene, browser] = await Promise.all([
    startCdpScene({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "1", ...server.env, ...env }),
    launchViewers(),
  ]);
  const sights = sightsOf(scene);
  return {
    ...scene,
    server,
    browser,
    rooms,
    sights,
    async openRed() {
      const session = await scene.open({ runtime: "chromium" });
      onTestFinished(async () => void (await scene.rest(session, undefined, { method: "DELETE" })));
      await sights.navigate(session, sights.pageOf("red"));
      return session;
    },
    async watch(session, link = {}, own = browser) {
      const { body } = await scene.rest(`${session}/view-links`, link);
      const viewer = await openLink(own, body.url);
      onTestFinished(() => viewer.page.context().close());
      return { ...viewer, linkId: body.id };
    },
    async pageOf(session) {
      const lent = await chromium.connectOverCDP(await scene.cdpUrl(session), { noDefaults: true });
      onTestFinished(() => lent.close());
      const [page] = lent.contexts()[0]?.pages() ?? [];
      if (!page) throw new Error("the session has no page");
      return page;
    },
    async present(session) {
      const participants = await rooms.listParticipants(roomOf(session));
      return participants.map(({ identity }) => identity.split(":")[0] ?? "").toSorted();
    },
    processes() {
      const all = listProcesses();
      const { dataDir } = scene.service;
      const worker = all.find((each) => each.dataDir === dataDir && each.command.includes("workers/main.ts"));
      return worker ? descendantsOf(worker.pid, all) : [];
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await scene[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

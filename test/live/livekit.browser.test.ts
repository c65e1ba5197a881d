import type { Page } from "playwright";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";
import { LiveClient } from "../support/live-client.ts";
import { sees } from "../support/live-sights.ts";
import { isServed, type LiveKitScene, sceneMs, startLiveKitScene, testLive } from "../support/livekit-scene.ts";

let scene: LiveKitScene;
let session: string;
beforeAll(async () => {
  if (isServed) scene = await startLiveKitScene();
}, sceneMs);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);
beforeEach(async () => {
  if (isServed) session = await scene.openRed();
});

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

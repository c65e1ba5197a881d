import { beforeAll, expect, onTestFinished, test } from "vitest";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import { isStillThere } from "../support/process-list.ts";
import { type DoomedService, verdict } from "./doomed-service.ts";

/** Connections of CDP clients whose gateway, browser or worker is killed. */
export function cdpClientTests(doomedOf: () => DoomedService): void {
  let doomed: DoomedService;
  beforeAll(() => {
    doomed = doomedOf();
  });

  async function addressOf(session: string): Promise<string> {
    return (await doomed.rest(`${session}/cdp-url`, {})).body.url;
  }

  async function connect(url: string): Promise<BareClient> {
    const client = await BareClient.connect(url);
    onTestFinished(() => client[Symbol.dispose]());
    return client;
  }

  /** Creates a session with two clients attached to its page. One of them has paused all new pages. */
  async function connectTwice(runtime = "headless-shell") {
    const session = await doomed.create({ runtime });
    const url = await addressOf(session);
    const clients = [await connect(url), await connect(url)];
    await Promise.all(clients.map((client) => client.attach()));
    const pause = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
    await clients[0]?.send("Target.setAutoAttach", pause);
    doomed.look();
    return { session, url, clients };
  }

  /** Returns the close codes of clients that close in time. */
  async function endsOf(clients: readonly BareClient[]) {
    const since = performance.now();
    const ends = await Promise.all(clients.map(({ closed }) => closed));
    expect(performance.now() - since).toBeLessThan(verdict);
    return ends;
  }

  /** Counts the free connection slots of the session by using all of them. */
  async function freePlaces(url: string): Promise<number> {
    const taken: BareClient[] = [];
    try {
      for (;;) taken.push(await BareClient.connect(url));
    } catch {
      return taken.length;
    } finally {
      for (const client of taken) client.socket.terminate();
    }
  }

  test("clients of a killed gateway are disconnected and can reconnect to the session through the next one", async () => {
    const { session, url, clients } = await connectTwice();
    await doomed.replaceSupervisor();
    const cut = { code: 1006, reason: "" };
    expect(await endsOf(clients)).toEqual([cut, cut]);

    const again = await connect(url);
    await again.attach();
    const to = doomed.site.url("/plain.html");
    expect((await doomed.rest(`${session}/navigate`, { url: to })).body).toMatchObject({ title: "Plain" });
    again[Symbol.dispose]();
    await expect.poll(() => freePlaces(url), { timeout: verdict }).toBe(4);
    await doomed.destroy(session);
  }, 120_000);

  test.each(["headless-shell", "chromium"])(
    "clients of a killed %s are notified that the session has ended",
    async (runtime) => {
      const { session, url, clients } = await connectTwice(runtime);
      const unanswered = clients.map((client) => client.send("Target.getTargets", {}, "none").then(String, String));
      await doomed.kill(doomed.browserOfSession(runtime).pid);
      const ended = { code: 1000, reason: "session-destroyed" };
      expect(await endsOf(clients)).toEqual([ended, ended]);
      await Promise.all(unanswered);
      await expect(BareClient.connect(url)).rejects.toThrow("410");
      expect((await doomed.rest(session)).body).toMatchObject({ status: 410, ended_reason: "crashed" });
    },
    60_000,
  );

  test("clients of a killed worker are notified that the session has ended", async () => {
    const { session, url, clients } = await connectTwice();
    const { browsers, workerPid } = doomed;
    await doomed.kill(workerPid);
    const ended = { code: 1000, reason: "session-destroyed" };
    expect(await endsOf(clients)).toEqual([ended, ended]);
    await expect(BareClient.connect(url)).rejects.toThrow("410");
    expect((await doomed.rest(session)).body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
    await expect.poll(() => browsers.filter(isStillThere), { timeout: verdict }).toEqual([]);
    await doomed.createEventually();
  }, 60_000);
}

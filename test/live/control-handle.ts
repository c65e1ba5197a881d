import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { DeployedGateway } from "../support/deployment.ts";
import type { InputSite } from "../support/input-site.ts";
import { LiveClient } from "../support/live-client.ts";

/** Gateways of a deployment with a worker, and a site that its pages may reach. */
interface ControlScene {
  readonly site: InputSite;
  readonly gateways: readonly [DeployedGateway, DeployedGateway];
}

/** Control by viewers at two gateways. */
export function controlHandleTests(sceneOf: () => ControlScene): void {
  let site: InputSite;
  let gateways: readonly [DeployedGateway, DeployedGateway];
  /** Path of the session. */
  let session: string;
  /** Token of a link that allows control. */
  let key: string;

  beforeAll(async () => {
    ({ site, gateways } = sceneOf());
    const { body } = await gateways[0].rest("/v1/sessions", {});
    session = `/v1/sessions/${body.id}`;
    await gateways[0].rest(`${session}/navigate`, { url: site.url });
    key = await makeKey({ control: true });
  }, 120_000);

  afterAll(() => gateways[0].rest(session, undefined, { method: "DELETE" }));

  beforeEach(() => {
    site.told.length = 0;
  });

  async function makeKey(request: object): Promise<string> {
    const { body } = await gateways[0].rest(`${session}/view-links`, request);
    return new URL(body.url).hash.slice(1);
  }

  /** Joins by a link until the test ends. */
  async function join(which: 0 | 1 = 0, request: object = {}, token = key): Promise<LiveClient & { clientId: string }> {
    const viewer = await LiveClient.join(gateways[which].url, token, request);
    onTestFinished(() => viewer[Symbol.dispose]());
    const { hello } = await viewer.receive((message) => message.hello);
    return Object.assign(viewer, { clientId: `view:${hello.viewer.id}` });
  }

  const awaitHolder = (viewer: LiveClient, clientId: string | undefined) =>
    viewer.receive(() => viewer.received.findLast(({ state }) => state)?.state.control.holder_client_id === clientId);
  const click = (x: number, y: number) => [
    { kind: "pointer_down", x, y },
    { kind: "pointer_up", x, y },
  ];
  const pressed = () => site.told.filter((told) => told.startsWith("mousedown"));
  const eventually = <Value>(look: () => Value) => expect.poll(look, { timeout: 20_000 });

  test("a viewer takes, uses and returns control, and all viewers see its holder and time", async () => {
    const [ada, ben] = [await join(0), await join(1)];
    const before = await ada.receive(({ state }) => state);
    expect(before.state.control).toMatchObject({ state: "api" });
    ben.send({ input: { events: click(10, 300) } });
    expect(await ben.receive(({ input }) => input)).toEqual({ input: { accepted: 0, dropped: 2 } });

    ada.send({ take_control: {} });
    const taken = await awaitHolder(ben, ada.clientId);
    expect(taken).toBeDefined();
    const { state } = await ben.receive((message) => message.state?.control.state === "human_control");
    expect(Date.parse(state.control_changed_at)).toBeGreaterThanOrEqual(Date.parse(before.state.control_changed_at));
    ben.send({ take_control: {} });
    const { refused } = await ben.receive((message) => message.refused);
    expect(refused).toMatchObject({ status: 409, winner_client_id: ada.clientId });
    expect(refused.type).toMatch(/pair-mode-conflict$/);

    ben.send({ input: { events: click(20, 300) } });
    ada.send({ input: { events: click(30, 300) } });
    expect(await ada.receive(({ input }) => input)).toEqual({ input: { accepted: 2, dropped: 0 } });
    await ben.receive(({ input }) => input?.dropped === 4);
    await eventually(pressed).toEqual(["mousedown 0 30 300"]);
    const tap = await gateways[0].rest(`${session}/interact`, { action: { kind: "tap", x: 5, y: 5 } });
    expect([tap.status, tap.body.holder_client_id]).toEqual([409, ada.clientId]);

    ben.send({ hand_back: {} });
    const invalid = await ben.receive((message) => message.refused?.transition === "handback");
    expect(invalid.refused).toMatchObject({ from: "human_control", holder_client_id: ada.clientId });
    ada.send({ hand_back: {} });
    await awaitHolder(ben, undefined);
    const { body } = await gateways[0].rest("/v1/account/audit-log?limit=10");
    const actions = body.data.map(({ action }: { action: string }) => action);
    expect(actions.slice(0, 2)).toEqual(["session.hand_back", "session.take_over"]);
  }, 60_000);

  test("only one of eight concurrent viewers at two gateways takes control, and the others see the holder", async () => {
    const viewers = await Promise.all(Array.from({ length: 8 }, (_, index) => join(index % 2 === 0 ? 0 : 1)));
    for (const viewer of viewers) viewer.send({ take_control: {} });
    const [watcher] = viewers;
    if (!watcher) throw new Error("expected a viewer");
    const { state } = await watcher.receive((message) => message.state?.control.state === "human_control");
    const { holder_client_id: winner } = state.control;
    const losers = viewers.filter(({ clientId }) => clientId !== winner);
    expect(losers).toHaveLength(7);
    for (const loser of losers) {
      const { refused } = await loser.receive((message) => message.refused);
      expect(refused).toMatchObject({ status: 409, winner_client_id: winner });
    }
    viewers.forEach((viewer, index) => {
      viewer.send({ input: { events: click(100 + 10 * index, 300) } });
    });
    for (const viewer of viewers) await viewer.receive(({ input }) => input);
    const column = 100 + 10 * viewers.findIndex(({ clientId }) => clientId === winner);
    await eventually(pressed).toEqual([`mousedown 0 ${column} 300`]);
    for (const viewer of viewers) viewer.send({ hand_back: {} });
    await awaitHolder(watcher, undefined);
  }, 60_000);

  test("a viewer that reconnects with its own key keeps its identity and control, and other keys do not", async () => {
    const own = "a-secret-of-the-viewer";
    const first = await join(0, { viewer_key: own });
    first.send({ take_control: {} });
    await awaitHolder(first, first.clientId);
    const again = await join(1, { viewer_key: own });
    expect(again.clientId).toBe(first.clientId);
    expect(await first.closed).toEqual({ code: 1008, reason: "conflict" });
    again.send({ input: { events: click(40, 300) } });
    expect(await again.receive(({ input }) => input)).toEqual({ input: { accepted: 2, dropped: 0 } });
    await eventually(pressed).toEqual(["mousedown 0 40 300"]);
    const other = await join(0, { viewer_key: `${own}-of-another` });
    expect(other.clientId).not.toBe(first.clientId);
    again.send({ hand_back: {} });
    await awaitHolder(other, undefined);
  }, 60_000);

  test("the keys held by a viewer are released when it leaves", async () => {
    const viewer = await join(0, { viewer_key: "who-holds-a-button" });
    viewer.send({ take_control: {} });
    await awaitHolder(viewer, viewer.clientId);
    viewer.send({ input: { events: [{ kind: "pointer_down", x: 50, y: 300 }] } });
    await eventually(pressed).toEqual(["mousedown 0 50 300"]);
    viewer.socket.terminate();
    await eventually(() => site.told).toContain("mouseup 0 50 300");
    const again = await join(0, { viewer_key: "who-holds-a-button" });
    again.send({ hand_back: {} });
    await awaitHolder(again, undefined);
  }, 60_000);

  test("a link to watch takes no control and sends no input", async () => {
    const viewer = await join(0, {}, await makeKey({ control: false }));
    viewer.send({ take_control: {} });
    const { refused } = await viewer.receive((message) => message.refused);
    expect([refused.status, refused.detail]).toEqual([
      403,
      "the key or link allows only watching: use a key with the scope sessions:write, or a link with control",
    ]);
    viewer.send({ input: { events: click(60, 300) } });
    viewer.send({ heartbeat: {} });
    await viewer.receive(({ heartbeat }) => heartbeat);
    expect(viewer.received.filter((message) => message.refused)).toHaveLength(2);
    await gateways[0].rest(`${session}/interact`, { action: { kind: "tap", x: 5, y: 300 } });
    await eventually(pressed).toEqual(["mousedown 0 5 300"]);
  }, 60_000);

  test("a viewer cannot take control from an agent that works alone", async () => {
    const { rest } = gateways[0];
    const { body: agent } = await rest("/v1/agent-sessions", { mode: "agent" });
    const { body: link } = await rest(`/v1/sessions/${agent.session_id}/view-links`, { control: true });
    const viewer = await join(1, {}, new URL(link.url).hash.slice(1));
    const { state } = await viewer.receive((message) => message.state);
    expect(state.control).toMatchObject({ state: "agent_control" });
    viewer.send({ take_control: {} });
    const { refused } = await viewer.receive((message) => message.refused);
    expect(refused).toMatchObject({ from: "agent", transition: "takeover" });
    await rest(`/v1/agent-sessions/${agent.id}/mode`, { mode: "pair" });
    viewer.send({ take_control: {} });
    await awaitHolder(viewer, viewer.clientId);
    await rest(`/v1/agent-sessions/${agent.id}`, undefined, { method: "DELETE" });
  }, 60_000);
}

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { openDatabase } from "../../../src/platform/postgres/database.ts";
import { controlHandleTests } from "../../live/control-handle.ts";
import { BareClient } from "../../support/cdp-proxy-scene.ts";
import { silentLog } from "../../support/database.ts";
import type { DeployedGateway, Deployment } from "../../support/deployment.ts";
import type { InputSite } from "../../support/input-site.ts";
import { LiveClient } from "../../support/live-client.ts";
import { race } from "./race.ts";

/** Two gateways with workers, and a site that pages may reach. */
interface ControlScene {
  readonly deployment: Deployment;
  readonly site: InputSite;
}

/** Control by clients and by viewers of two gateways. */
export function controlTests(sceneOf: () => ControlScene): void {
  let site: InputSite;
  let deployment: Deployment;
  let one: DeployedGateway;
  let other: DeployedGateway;
  /** Paths of an agent session and of its browser session. */
  let agent: string;
  let session: string;

  beforeAll(async () => {
    ({ site, deployment } = sceneOf());
    one = deployment.gateway(0);
    other = deployment.gateway(1);
    const { status, body } = await one.rest("/v1/agent-sessions", { labels: { kind: "shared" } });
    expect([status, body.detail]).toEqual([201, undefined]);
    agent = `/v1/agent-sessions/${body.id}`;
    session = `/v1/sessions/${body.session_id}`;
    await one.rest(`${session}/navigate`, { url: site.url });
  }, 120_000);

  afterAll(() => one.rest(agent, undefined, { method: "DELETE" }));

  beforeEach(async () => {
    await giveBack("anna");
    await one.rest(`${session}/interact`, { action: { kind: "type", selector: "#field", text: "x", clear: true } });
    await eventually(() => site.told.at(-1)).toBe("keyup x 0 0");
    site.told.length = 0;
  });

  /** Waits for a condition with a timeout for busy machines. */
  const eventually = <Value>(look: () => Value) => expect.poll(look, { timeout: 20_000 });
  const take = (client_id: string, gateway = one) => gateway.rest(`${agent}/takeover`, { client_id });
  const giveBack = (client_id: string, gateway = one) => gateway.rest(`${agent}/handback`, { client_id });
  const input = (client_id: string, events: object[], gateway = one) =>
    gateway.rest(`${agent}/input-event`, { client_id, events });
  const keysTold = () => site.told.filter((told) => told.startsWith("keydown")).map((told) => told.split(" ")[1]);
  const press = (key: string) => [
    { kind: "key_down", key },
    { kind: "key_up", key },
  ];

  /** Waits for all earlier events of the page, which arrive in order. */
  async function receiveAll(client: string, gateway = one): Promise<void> {
    await input(client, press("End"), gateway);
    await eventually(() => site.told.at(-1)).toMatch(/^keyup End/);
  }

  test("transfers control to a person, refuses commands meanwhile, and returns control", async () => {
    expect((await one.rest(`${session}/state`)).body.control).toMatchObject({ state: "agent_control" });
    const taken = await take("anna");
    expect(taken.body).toMatchObject({ state: "human_control", holder_client_id: "anna" });
    const lapses = Date.parse(taken.body.lapses_at) - Date.now();
    expect(lapses).toBeGreaterThan(20_000);
    expect(lapses).toBeLessThanOrEqual(30_000);
    for (const [path, body] of [
      ["navigate", { url: site.url }],
      ["interact", { action: { kind: "tap", x: 5, y: 5 } }],
      ["interact", { action: { kind: "tap", x: 5, y: 5 }, while_paused: true }],
      ["wait", { condition: { kind: "load_state", state: "load" } }],
    ] as const) {
      const refused = await other.rest(`${session}/${path}`, body);
      expect(refused).toMatchObject({ status: 409, body: { holder_client_id: "anna" } });
      expect(refused.body.in_doubt).toBeUndefined();
    }
    expect((await other.rest(`${session}/state`)).body.control).toMatchObject({
      state: "human_control",
      holder_client_id: "anna",
      lapses_at: expect.any(String),
    });
    expect((await other.rest(`${session}/capture`, { kind: "screenshot" })).status).toBe(200);
    expect((await take("anna", other)).body.control_epoch).toBe(taken.body.control_epoch);
    expect((await take("ben", other)).body).toMatchObject({ status: 409, winner_client_id: "anna" });
    expect((await giveBack("ben", other)).body).toMatchObject({
      status: 409,
      from: "human_control",
      transition: "handback",
      holder_client_id: "anna",
    });
    const held = await one.rest(`${agent}/mode`, { mode: "agent" });
    expect(held.body).toMatchObject({ status: 409, from: "human_control", transition: "mode" });
    expect((await giveBack("anna", other)).body).toMatchObject({ state: "agent_control" });
    expect((await giveBack("anna")).body).toMatchObject({ status: 409, from: "agent_control", transition: "handback" });
    const tapped = await other.rest(`${session}/interact`, { action: { kind: "tap", x: 5, y: 5 } });
    expect([tapped.status, tapped.body.detail]).toEqual([200, undefined]);
  });

  test("cancels a command at a takeover, and sends no further part of it to the page", async () => {
    const action = { kind: "type", selector: "#field", text: "a".repeat(400), delay_ms: 20 };
    const type = () =>
      other.rest(
        `${session}/interact`,
        { action, timeout_ms: 60_000 },
        { headers: { "idempotency-key": "typed once" } },
      );
    const typing = type();
    const waiting = other.rest(`${session}/wait`, { condition: { kind: "text", text: "never" } });
    await eventually(() => keysTold().length).toBeGreaterThan(3);
    const beganAt = performance.now();
    expect((await take("anna")).status).toBe(200);
    expect(performance.now() - beganAt).toBeLessThan(5_000);
    expect(await typing).toMatchObject({ status: 409, body: { holder_client_id: "anna", in_doubt: true } });
    const queued = await waiting;
    expect(queued).toMatchObject({ status: 409, body: { holder_client_id: "anna" } });
    expect(queued.body.in_doubt).toBeUndefined();
    expect((await input("anna", press("b"))).body).toEqual({ accepted: 2, dropped: 0 });
    await receiveAll("anna");
    const keys = keysTold();
    expect(keys.slice(keys.indexOf("b"))).toEqual(["b", "End"]);
    await giveBack("anna");
    // A retry is not executed, because the progress of the first attempt is unknown.
    expect(await type()).toMatchObject({ status: 409, body: { in_doubt: true } });
  });

  test("allows CDP clients only to read, and releases their held input", async () => {
    const { body } = await one.rest(`${session}/cdp-url`, {});
    const client = await BareClient.connect(body.url);
    onTestFinished(() => client[Symbol.dispose]());
    const page = await client.attach();
    const at = { x: 301, y: 302, button: "left", clickCount: 1 };
    await client.send("Input.dispatchMouseEvent", { ...at, type: "mousePressed", buttons: 1 }, page);
    await take("anna");
    for (const [method, params] of [
      ["Input.dispatchMouseEvent", { ...at, type: "mouseReleased" }],
      ["Runtime.evaluate", { expression: "1" }],
      ["Page.navigate", { url: "about:blank" }],
    ] as const) {
      expect((await client.send(method, params, page)).error?.message).toContain("a person holds control");
    }
    expect((await client.send("Page.captureScreenshot", {}, page)).error).toBeUndefined();
    await receiveAll("anna");
    expect(site.told.filter((told) => told.startsWith("mouse"))).toEqual(["mousedown 0 301 302", "mouseup 0 301 302"]);
    await giveBack("anna");
    expect((await client.send("Runtime.evaluate", { expression: "1" }, page)).error).toBeUndefined();
  });

  test("ends a CDP client's running command, or abandons it, when a person takes control", async () => {
    const { body } = await one.rest(`${session}/cdp-url`, {});
    const client = await BareClient.connect(body.url);
    onTestFinished(() => client[Symbol.dispose]());
    const page = await client.attach();
    const told = 'const told = new XMLHttpRequest(); told.open("POST", "/told", false); told.send("runs");';
    const run = (script: string) =>
      client.send("Runtime.evaluate", { expression: `{ ${told} ${script} }`, awaitPromise: true }, page);
    const loops = [run("for (;;);"), run("for (;;);")];
    await eventually(() => site.told.at(-1)).toBe("runs");
    await take("anna");
    for (const { error } of await Promise.all(loops))
      expect(error?.message).toMatch(/a person (has taken|holds) control/);
    await receiveAll("anna");
    await giveBack("anna");

    const waiting = run("new Promise(() => undefined);");
    await eventually(() => site.told.at(-1)).toBe("runs");
    const reading = client.send("Page.captureScreenshot", {}, page);
    await take("anna");
    expect((await waiting).error?.message).toContain("a person has taken control");
    expect((await reading).error).toBeUndefined();
    // The page's own scripts continue.
    await receiveAll("anna");
    await giveBack("anna");
    expect((await client.send("Runtime.evaluate", { expression: "1" }, page)).result.result.value).toBe(1);
  });

  test("accepts input in order from the holder, and drops the input of others", async () => {
    await take("anna");
    const { body: again } = await take("anna");
    const click = [
      { kind: "pointer_move", x: 200, y: 150 },
      { kind: "pointer_down", x: 200, y: 150 },
      { kind: "pointer_up", x: 200, y: 150 },
    ];
    expect((await input("ben", click, other)).body).toEqual({ accepted: 0, dropped: 3, reason: "no_control" });
    const stale = { client_id: "anna", control_epoch: again.control_epoch - 1, events: click };
    expect((await one.rest(`${agent}/input-event`, stale)).body).toEqual({
      accepted: 0,
      dropped: 3,
      reason: "stale_control",
    });
    const resize = [{ kind: "viewport", width: 800, height: 600 }, ...press("b")];
    expect((await input("anna", resize)).body).toEqual({ accepted: 2, dropped: 1, reason: "viewport_fixed" });
    await eventually(() => site.told.at(-1)).toBe("keyup b 0 0");
    site.told.length = 0;
    const answer = await input("anna", [...click, ...press("a")], other);
    expect([answer.status, answer.body]).toEqual([202, { accepted: 5, dropped: 0 }]);
    await receiveAll("anna");
    expect(site.told.slice(0, 4)).toEqual(["mousedown 0 200 150", "mouseup 0 200 150", "keydown a 0 0", "keyup a 0 0"]);
    await giveBack("anna");
    expect((await input("anna", press("c"))).body).toEqual({ accepted: 0, dropped: 2, reason: "no_control" });
  });

  test("releases held keys and buttons when control is returned", async () => {
    await take("anna");
    await input("anna", [
      { kind: "key_down", key: "Shift" },
      { kind: "pointer_down", x: 90, y: 91, button: "right" },
    ]);
    await eventually(() => site.told.length).toBe(2);
    await giveBack("anna");
    await eventually(() => site.told.slice(2).toSorted()).toEqual(["keyup Shift 0 0", "mouseup 2 90 91"]);
  });

  test("inserts text and compositions of an input method", async () => {
    await one.rest(`${session}/interact`, { action: { kind: "tap", selector: "#field" } });
    await one.rest(`${session}/interact`, { action: { kind: "key", key: "Backspace" } });
    await take("anna");
    const events = [
      { kind: "text", text: "Grüß Gott 你好 " },
      { kind: "composition", text: "にほ", selection_start: 2, selection_end: 2 },
      { kind: "composition", text: "日本", done: true },
      { kind: "paste", text: " שלום" },
    ];
    expect((await input("anna", events)).body).toEqual({ accepted: 4, dropped: 0 });
    await eventually(() => site.told.filter((told) => told.startsWith("value")).at(-1)).toContain(
      "Grüß Gott 你好 日本 שלום",
    );
    await giveBack("anna");
  });

  test("accepts input over a WebSocket, reports the holder, and releases held input when it closes", async () => {
    const socket = new WebSocket(`${other.url.replace("http", "ws")}${agent}/stream`, ["pilothouse.v1"], {
      headers: { authorization: `Bearer ${deployment.key}` },
    });
    onTestFinished(() => socket.terminate());
    // biome-ignore lint/suspicious/noExplicitAny: messages have many shapes.
    const received: any[] = [];
    socket.on("message", (data) => received.push(JSON.parse(String(data))));
    await new Promise((resolve) => socket.once("open", resolve));
    const send = (sequence: number, events: object[]) =>
      socket.send(JSON.stringify({ client_id: "anna", sequence, events }));
    send(1, press("d"));
    await eventually(() => received.find(({ acknowledgement }) => acknowledgement)?.acknowledgement).toEqual({
      sequence: 1,
      accepted: 0,
      dropped: 2,
    });
    await take("anna");
    await eventually(() => received.filter(({ control }) => control).at(-1)?.control).toMatchObject({
      state: "human_control",
      holder_client_id: "anna",
    });
    for (let sequence = 2; sequence < 40; sequence += 1) send(sequence, press("e"));
    send(40, [{ kind: "key_down", key: "f" }]);
    await eventually(() => received.at(-1)?.acknowledgement).toEqual({ sequence: 40, accepted: 77, dropped: 2 });
    socket.close();
    await eventually(() => site.told.at(-1)).toBe("keyup f 0 0");
    expect(keysTold()).toEqual([...Array.from({ length: 38 }, () => "e"), "f"]);
    expect((await one.rest(`${session}/state`)).body.control.holder_client_id).toBe("anna");
    await giveBack("anna");
  });

  test("reserves the service's own client names, and refuses a takeover in mode agent", async () => {
    const { body: named } = await take("view:anna");
    expect(named).toMatchObject({ status: 400, errors: [{ field: "client_id" }] });
    expect((await one.rest(`${agent}/mode`, { mode: "agent" })).body).toMatchObject({ mode: "agent" });
    expect((await take("anna")).body).toMatchObject({ status: 409, from: "agent", transition: "takeover" });
    expect((await one.rest(`${agent}/mode`, { mode: "pair" })).body).toMatchObject({ mode: "pair" });
  });

  /** Expires control a minute ago, which exceeds clock differences of processes. */
  async function vanish(id: string): Promise<void> {
    const db = openDatabase({ url: deployment.postgres.url }, silentLog, 1);
    const lapsed = new Date(Date.now() - 60_000);
    await db.sql.updateTable("sessions").set({ control_lapses_at: lapsed }).where("id", "=", id).execute();
    await db.close();
  }

  /** Collects a session's events until the test ends. */
  async function receiveEvents(path: string): Promise<{ type: string; data: { cause?: string; mode?: string } }[]> {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const received: Awaited<ReturnType<typeof receiveEvents>> = [];
    const headers = { authorization: `Bearer ${deployment.key}` };
    const { body } = await fetch(`${other.url}${path}/events`, { headers, signal: stop.signal });
    const lines = createInterface(Readable.fromWeb(body as ReadableStream));
    lines.on("line", (line) => line.startsWith("data:") && received.push(JSON.parse(line.slice(5))));
    lines.on("error", () => undefined);
    return received;
  }

  test("reports every change of control by an event, an audit log entry and the state", async () => {
    const { body: made } = await one.rest("/v1/sessions", { runtime: "chromium" });
    const [own, path] = [made.id, `/v1/sessions/${made.id}`];
    const { body: driver } = await one.rest("/v1/agent-sessions", { session_id: own });
    const driven = `/v1/agent-sessions/${driver.id}`;
    const { body: link } = await one.rest(`${path}/view-links`, { control: true });
    const viewer = await LiveClient.join(other.url, new URL(link.url).hash.slice(1));
    onTestFinished(() => viewer[Symbol.dispose]());
    const { client_id: seen } = (await viewer.receive(({ hello }) => hello)).hello.viewer;
    const received = await receiveEvents(path);
    const ask = (verb: string, body: object) => async () => {
      const { status, body: answer } = await one.rest(`${driven}/${verb}`, body);
      expect(status, JSON.stringify(answer)).toBe(200);
    };
    const anna = { client_id: "anna" };
    /** Changes, each with its event's cause, its audit log action and the new holder. */
    const changes = [
      [ask("takeover", anna), "takeover", "agent_session.take_over", "anna"],
      [ask("handback", anna), "handback", "agent_session.hand_back", undefined],
      [async () => viewer.send({ take_control: {} }), "takeover", "session.take_over", seen],
      [async () => viewer.send({ hand_back: {} }), "handback", "session.hand_back", undefined],
      [ask("takeover", anna), "takeover", "agent_session.take_over", "anna"],
      [() => vanish(own), "lapsed", "session.control_lapsed", undefined],
      [ask("mode", { mode: "agent" }), "agent", "agent_session.set_mode", undefined],
      [ask("mode", { mode: "pair" }), "pair", "agent_session.set_mode", undefined],
      [ask("takeover", anna), "takeover", "agent_session.take_over", "anna"],
      // A takeover of expired control succeeds even before a sweep.
      [() => vanish(own).then(ask("takeover", { client_id: "ben" })), "takeover", "agent_session.take_over", "ben"],
      [() => other.rest(driven, undefined, { method: "DELETE" }), "handback", "agent_session.destroy", undefined],
    ] as const;
    const holder = async () => (await other.rest(`${path}/state`)).body.control.holder_client_id;
    for (const [change, , , holderAfter] of changes) {
      await change();
      await expect.poll(holder, { timeout: 20_000 }).toBe(holderAfter);
      await viewer.receive(
        ({ state }) =>
          state && viewer.received.findLast((each) => each.state)?.state.control.holder_client_id === holderAfter,
      );
    }
    const causes: string[] = changes.map(([, cause]) => cause);
    const actions: string[] = changes.map(([, , action]) => action);
    causes.splice(-2, 0, "lapsed");
    actions.splice(-2, 0, "session.control_lapsed");
    const told = () => received.map(({ data }) => data.cause ?? data.mode).filter((cause) => cause !== undefined);
    await eventually(told).toEqual(causes);
    const { body: log } = await one.rest("/v1/account/audit-log?limit=40");
    const written = log.data.filter(({ subject_id: id }: { subject_id: string }) => [own, driver.id].includes(id));
    const changed = written.map(({ action }: { action: string }) => action).toReversed();
    expect(changed.filter((action: string) => actions.includes(action))).toEqual(actions);
    await eventually(() => received.map(({ type }) => type)).toContain("agent_session.ended");
    await one.rest(path, undefined, { method: "DELETE" });
  });

  test("drives a running session and leaves it running", async () => {
    const { body: shell } = await one.rest("/v1/sessions", {});
    const refused = await one.rest("/v1/agent-sessions", { session_id: shell.id });
    expect(refused.body).toMatchObject({ status: 503, type: expect.stringContaining("driver-not-integrated") });
    await one.rest(`/v1/sessions/${shell.id}`, undefined, { method: "DELETE" });
    const { body: full } = await one.rest("/v1/sessions", { runtime: "chromium" });
    const wrong = await one.rest("/v1/agent-sessions", { session_id: full.id, archetype: "pixel-7", locale: "de" });
    expect(wrong.body.errors.map(({ field }: { field: string }) => field)).toEqual(["archetype", "locale"]);
    const { body: made } = await one.rest("/v1/agent-sessions", { session_id: full.id });
    expect(made).toMatchObject({ session_id: full.id, owns_session: false, status: "live" });
    expect((await one.rest("/v1/agent-sessions", { session_id: full.id })).status).toBe(409);
    const path = `/v1/agent-sessions/${made.id}`;
    await one.rest(`${path}/takeover`, { client_id: "anna" });
    expect((await other.rest(path, undefined, { method: "DELETE" })).status).toBe(204);
    expect((await one.rest(path)).body).toMatchObject({ status: 410, ended_reason: "destroyed" });
    expect((await one.rest(`/v1/sessions/${full.id}/state`)).body.control.state).toBe("api");
    expect((await one.rest(`/v1/sessions/${full.id}`, undefined, { method: "DELETE" })).status).toBe(204);
  });

  test("lists agent sessions, and ends an owned browser with its agent session", async () => {
    const { body: made } = await one.rest("/v1/agent-sessions", { labels: { kind: "listed" }, mode: "agent" });
    const listed = await other.rest("/v1/agent-sessions?label=kind:listed&status=live");
    expect(listed.body.data).toMatchObject([{ id: made.id, mode: "agent", owns_session: true }]);
    expect((await one.rest(`/v1/agent-sessions/${made.id}`, undefined, { method: "DELETE" })).status).toBe(204);
    expect((await other.rest(`/v1/sessions/${made.session_id}`)).status).toBe(410);
    expect((await other.rest(`/v1/agent-sessions/${made.id}/takeover`, {})).status).toBe(410);
    expect((await other.rest(`/v1/agent-sessions/${made.id}/input-event`, { events: press("a") })).status).toBe(410);
  });

  test("grants control to exactly one of several concurrent requests, and names the holder to the others", {
    timeout: 120_000,
  }, async () => {
    await race({ gateways: [one, other], agent, session, site, rounds: 10 });
  });

  describe("a viewer", () => controlHandleTests(() => ({ site, gateways: [one, other] })));
}

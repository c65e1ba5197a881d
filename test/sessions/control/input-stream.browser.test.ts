import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { FixtureSite } from "../../support/fixture-site.ts";
import { InputLedger } from "../../support/input-ledger.ts";
import { acknowledgedAll, expectedOfRun, presses, sendAtRate, strayPresses } from "../../support/input-run.ts";
import { InputSite } from "../../support/input-site.ts";
import { type InputTarget, inputTransports, openInput } from "../../support/input-stream.ts";
import { LiveClient } from "../../support/live-client.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { borrowService, type WarmService } from "../../support/warm-service.ts";

let ledger: InputLedger;
let texts: InputSite;
let service: WarmService;
let site: FixtureSite;
let rest: Rest;
let agent: string;
/** Path of the session. */
let session: string;
let target: InputTarget;
beforeAll(async () => {
  const borrowed = await borrowService();
  ({ service, site } = borrowed);
  ledger = await InputLedger.start(borrowed.ports[0]);
  texts = await InputSite.start(borrowed.ports[1]);
  rest = restClient(service);
  const { body } = await rest("/v1/agent-sessions", {});
  agent = `/v1/agent-sessions/${body.id}`;
  session = `/v1/sessions/${body.session_id}`;
  await rest(`${session}/navigate`, { url: ledger.url });
  const { url, grpcAddress, key } = service;
  target = { url, grpcAddress, key, agentId: body.id, clientId: "anna" };
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await ledger?.[Symbol.asyncDispose]();
  await texts?.[Symbol.asyncDispose]();
  await site?.stop();
}, 60_000);
beforeEach(async () => {
  expect((await rest(`${agent}/takeover`, { client_id: "anna" })).status).toBe(200);
  ledger.received.length = 0;
});

/** Waits for a condition with a timeout for busy machines. */
const eventually = <Value>(look: () => Value) => expect.poll(look, { timeout: 60_000 });
const whatWasReceived = () => ledger.received.map(({ what }) => what);

/** 32 presses of a key. */
const keys = Array.from({ length: 32 }, () => [
  { kind: "key_down", key: "k" },
  { kind: "key_up", key: "k" },
]).flat();
/** A key that stalls the page for 2 s. */
const stall = [
  { kind: "key_down", key: "F8" },
  { kind: "key_up", key: "F8" },
];
/** Events after the stalling key that are out of order. */
const outOfOrder = () =>
  whatWasReceived()
    .slice(2)
    .filter((what, index) => what !== (index % 2 === 0 ? "keydown k" : "keyup k"));

test.each(inputTransports)(
  "delivers input over %s once and in order, with each press at the pointer",
  {
    timeout: 90_000,
  },
  async (transport) => {
    using stream = await openInput(transport, target);
    const count = 250;
    await sendAtRate(count, 250, (event) => stream.send([event]));
    await acknowledgedAll(stream);
    expect(stream.acknowledged).toMatchObject({ sequence: count, accepted: count, dropped: 0 });
    const expected = expectedOfRun(count);
    await eventually(() => presses(ledger.received).length).toBeGreaterThanOrEqual(expected.length);
    expect(presses(ledger.received)).toEqual(expected);
    expect(strayPresses(ledger.received)).toEqual([]);
  },
);

test("delays a stream for a stalled page without loss, and reports dropped events to a request", {
  timeout: 120_000,
}, async () => {
  using stream = await openInput("WebSocket", target);
  stream.send(stall);
  const messages = 40;
  for (let message = 0; message < messages; message += 1) stream.send(keys);
  // The stalled page handles no events, and events beyond its limit are not acknowledged.
  await eventually(() => stream.acknowledged.accepted).toBeGreaterThan(64);
  const asked = await rest(`${agent}/input-event`, { client_id: "anna", events: keys });
  expect(asked.body.accepted + asked.body.dropped).toBe(keys.length);
  await acknowledgedAll(stream);
  expect(stream.acknowledged).toEqual({ sequence: messages + 1, accepted: 2 + messages * keys.length, dropped: 0 });
  const wanted = 2 + messages * keys.length + asked.body.accepted;
  await eventually(() => ledger.received.length).toBeGreaterThanOrEqual(wanted);
  expect(ledger.received.length).toBe(wanted);
  expect(outOfOrder()).toEqual([]);
});

test("delays a viewer for a stalled page without loss", { timeout: 120_000 }, async () => {
  await rest(`${agent}/handback`, { client_id: "anna" });
  const { body } = await rest(`${session}/view-links`, { control: true });
  using viewer = await LiveClient.join(target.url, new URL(body.url).hash.slice(1));
  viewer.send({ take_control: {} });
  await viewer.receive(({ state }) => state?.control.state === "human_control");
  viewer.send({ input: { events: stall } });
  const messages = 40;
  for (let message = 0; message < messages; message += 1) viewer.send({ input: { events: keys } });
  const all = 2 + messages * keys.length;
  const { input } = await viewer.receive((message) => message.input?.accepted + message.input?.dropped >= all);
  expect(input).toEqual({ accepted: all, dropped: 0 });
  await eventually(() => ledger.received.length).toBeGreaterThanOrEqual(all);
  expect(ledger.received.length).toBe(all);
  expect(outOfOrder()).toEqual([]);
  viewer.send({ hand_back: {} });
  await eventually(async () => (await rest(`${session}/state`)).body.control.state).not.toBe("human_control");
});

test.each(inputTransports)(
  "delivers text of every script, composition and a large paste over %s unchanged",
  async (transport) => {
    await rest(`${agent}/handback`, { client_id: "anna" });
    await rest(`${session}/navigate`, { url: texts.url });
    await rest(`${agent}/takeover`, { client_id: "anna" });
    onTestFinished(async () => {
      await rest(`${agent}/handback`, { client_id: "anna" });
      await rest(`${session}/navigate`, { url: ledger.url });
    });
    const scripts = ["Grüße, naïve", "Привет, мир", "Καλημέρα", "שלום עולם", "مرحبا", "नमस्ते", "你好，世界", "👩‍👩‍👧‍👦"];
    const written = scripts.join(" ");
    const pasted = `${written} `.repeat(1_500);
    expect(pasted.length).toBeGreaterThan(100_000);
    using stream = await openInput(transport, target);
    stream.send([{ kind: "text", text: written }]);
    // A Japanese input method's steps from kana to kanji.
    for (const text of ["に", "にほ", "にほん", "日本"]) {
      stream.send([{ kind: "composition", text, done: text === "日本" }]);
    }
    stream.send([{ kind: "paste", text: pasted }]);
    await acknowledgedAll(stream);
    expect(stream.acknowledged).toMatchObject({ accepted: 6, dropped: 0 });
    const value = () => texts.told.findLast((told) => told.startsWith("value"))?.length;
    const expected = `value ${JSON.stringify(`${written}日本${pasted}`)} 0 0`;
    await eventually(value).toBe(expected.length);
    expect(texts.told.findLast((told) => told.startsWith("value"))).toBe(expected);
  },
);

test("delivers wheel and touch events to the page", async () => {
  using stream = await openInput("gRPC", target);
  const points = (...places: number[]) => places.map((x, id) => ({ id, x, y: 20 }));
  stream.send([{ kind: "wheel", x: 30, y: 40, dx: 0, dy: 120 }]);
  stream.send([
    { kind: "touch", phase: 1, points: points(10) },
    { kind: "touch", phase: 1, points: points(10, 50) },
    { kind: "touch", phase: 2, points: points(20, 70) },
    { kind: "touch", phase: 3, points: points(20) },
    { kind: "touch", phase: 3, points: [] },
  ]);
  await acknowledgedAll(stream);
  expect(stream.acknowledged.accepted).toBe(6);
  await eventually(() => whatWasReceived().filter((what) => what.startsWith("touchend")).length).toBe(2);
  expect(whatWasReceived()).toContain("wheel 30,40");
  expect(whatWasReceived().filter((what) => what.startsWith("touch"))).toEqual([
    "touchstart 10,20",
    "touchstart 10,20;50,20",
    "touchmove 20,20;70,20",
    "touchend 20,20",
    "touchend ",
  ]);
});

import { chromium } from "playwright";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { BareClient, borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { LiveClient } from "../support/live-client.ts";

let scene: CdpScene;
/** Path of a session that shows the form. */
let session: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  session = await scene.open();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

beforeEach(async () => {
  // The settings of the last test's client end after its connection has closed.
  const show = () => scene.rest(`${session}/navigate`, { url: scene.site.url("/form.html") });
  await expect.poll(async () => (await show()).body.title, { timeout: 20_000 }).toBe("Form");
});

const state = async () => (await scene.rest(`${session}/state`)).body;
const title = async () => (await state()).title;

/** Takes control through a view link, until the test ends. */
async function takeOver() {
  const { body: link } = await scene.rest(`${session}/view-links`, { control: true });
  const viewer = await LiveClient.join(scene.service.url, link.url.split("#")[1]);
  const control = () => viewer.received.findLast((message) => message.state)?.state.control.state;
  const handBack = async () => {
    viewer.send({ hand_back: {} });
    await viewer.receive(() => control() === "api");
  };
  onTestFinished(async () => {
    if (control() === "human_control") await handBack();
    viewer[Symbol.dispose]();
  });
  viewer.send({ take_control: {} });
  await viewer.receive(() => control() === "human_control");
  return {
    viewer,
    navigate: (path: string) => viewer.send({ command: { kind: "navigate", url: scene.site.url(path) } }),
    press: (key: string) => viewer.send({ input: { events: ["key_down", "key_up"].map((kind) => ({ kind, key })) } }),
    handBack,
  };
}

/** Connects a client and attaches it to the session's page. */
async function connect() {
  const client = await BareClient.connect(await scene.cdpUrl(session));
  onTestFinished(() => client[Symbol.dispose]());
  const page = await client.attach();
  const send = async (method: string, params: object = {}) => {
    const answer = await client.send(method, params, page);
    expect([method, answer.error]).toEqual([method, undefined]);
    return answer.result;
  };
  const count = (method: string) => client.received.filter((message) => message.method === method).length;
  return { client, send, count };
}

type Send = Awaited<ReturnType<typeof connect>>["send"];

describe("a person can use a page after taking control from a CDP client that", () => {
  const offline = { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
  const all = { urlPattern: "", latency: 0, downloadThroughput: 0, uploadThroughput: 0 };
  const loading: [does: string, (send: Send) => Promise<unknown>][] = [
    ["pauses requests", (send) => send("Fetch.enable", { patterns: [{ urlPattern: "*" }] })],
    ["disables the network", (send) => send("Network.emulateNetworkConditions", offline)],
    [
      "disables the network by a rule",
      async (send) => {
        await send("Network.enable");
        await send("Network.emulateNetworkConditionsByRule", { offline: true, matchedNetworkConditions: [all] });
      },
    ],
  ];
  test.each(loading)("%s", async (_does, set) => {
    const { send } = await connect();
    await set(send);
    const person = await takeOver();
    person.navigate("/plain.html");
    await expect.poll(title).toBe("Plain");
  });

  const running: [does: string, (send: Send, client: BareClient) => Promise<unknown>][] = [
    ["ignores input", (send) => send("Input.setIgnoreInputEvents", { ignore: true })],
    ["disables scripts", (send) => send("Emulation.setScriptExecutionDisabled", { value: true })],
    [
      "blocks all addresses",
      async (send) => {
        await send("Network.enable");
        await send("Network.setBlockedURLs", { urls: ["*"] });
      },
    ],
    [
      "has paused a script",
      async (send, client) => {
        await send("Debugger.enable");
        await send("Runtime.evaluate", { expression: "setTimeout(() => { debugger; }, 1)" });
        await client.receive(({ method }) => method === "Debugger.paused");
      },
    ],
    [
      "sets a breakpoint on key presses",
      async (send) => {
        await send("Debugger.enable");
        await send("DOMDebugger.setEventListenerBreakpoint", { eventName: "keydown" });
      },
    ],
    [
      "inspects clicked elements",
      async (send) => {
        for (const method of ["DOM.enable", "Overlay.enable"]) await send(method);
        await send("Overlay.setInspectMode", { mode: "searchForNode", highlightConfig: { showInfo: true } });
      },
    ],
  ];
  test.each(running)("%s", async (_does, set) => {
    const { client, send } = await connect();
    const place = "(({ x, y }) => ({ x: x + 9, y: y + 9 }))(document.querySelector('#go').getBoundingClientRect())";
    const { result: at } = await send("Runtime.evaluate", { expression: place, returnByValue: true });
    const fetching = "fetch('/plain.html').then(() => { document.title = 'fetched'; })";
    await send("Runtime.evaluate", { expression: `addEventListener("keyup", () => ${fetching})` });
    await set(send, client);
    const { viewer, press } = await takeOver();
    const clicking = ["pointer_move", "pointer_down", "pointer_up"];
    viewer.send({ input: { events: clicking.map((kind) => ({ kind, ...at.value })) } });
    await expect.poll(title).toBe("click go 1");
    press("q");
    await expect.poll(title).toBe("fetched");
  });
});

test("a paused request continues when a person takes control, and pausing resumes after the release", async () => {
  const { send, count } = await connect();
  await send("Fetch.enable", { patterns: [{ urlPattern: "*" }] });
  await send("Runtime.evaluate", { expression: "setTimeout(() => { location.href = '/plain.html'; })" });
  await expect.poll(() => count("Fetch.requestPaused")).toBe(1);
  const person = await takeOver();
  await expect.poll(title).toBe("Plain");
  const paused = count("Fetch.requestPaused");
  await person.handBack();
  void send("Page.navigate", { url: scene.site.url("/form.html") }).catch(() => undefined);
  await expect.poll(() => count("Fetch.requestPaused")).toBe(paused + 1);
});

test("CDP clients do not receive events in which a page repeats a person's typing", async () => {
  const events = await fetch(`${scene.service.url}${session}/events`, {
    headers: { authorization: `Bearer ${scene.service.key}` },
  });
  const { client, send } = await connect();
  for (const method of ["Runtime.enable", "Log.enable", "Console.enable"]) await send(method);
  await send("Runtime.addBinding", { name: "leak" });
  const repeat = "leak(told), console.log(told), setTimeout(() => { throw new Error(told); })";
  const listener = `({ key }) => { const told = "told " + key; ${repeat}; }`;
  await send("Runtime.evaluate", { expression: `addEventListener("keydown", ${listener})` });
  const told = (key: string) =>
    client.received.flatMap(({ method, params }) => (JSON.stringify(params)?.includes(`told ${key}`) ? [method] : []));
  const person = await takeOver();
  person.press("q");
  await expect.poll(title).toBe("key q");
  await person.handBack();
  await scene.rest(`${session}/interact`, { action: { kind: "key", key: "z" } });
  await expect.poll(title).toBe("key z");
  await expect.poll(() => told("z")).toContain("Runtime.exceptionThrown");
  expect(told("z")).toEqual(
    expect.arrayContaining(["Runtime.bindingCalled", "Runtime.consoleAPICalled", "Console.messageAdded"]),
  );
  expect(told("q")).toEqual([]);

  // An earlier client may disconnect meanwhile, from which no event was withheld.
  client.socket.close();
  let text = "";
  for await (const part of (events.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += part;
    if (/"withheld_events":[1-9]/.test(text)) break;
  }
  const withheld = Number(/"withheld_events":([1-9]\d*)/.exec(text)?.[1]);
  expect(withheld).toBeGreaterThanOrEqual(4);
});

test("Playwright's routes work again after a person releases control", async () => {
  const browser = await chromium.connectOverCDP(await scene.cdpUrl(session));
  onTestFinished(() => browser.close());
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error("the browser shows no page");
  const body = "<!DOCTYPE html><title>Routed</title>";
  await page.route("**/plain.html", (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(scene.site.url("/plain.html"));
  expect(await page.title()).toBe("Routed");

  const person = await takeOver();
  person.navigate("/plain.html");
  await expect.poll(title).toBe("Plain");
  await person.handBack();
  await page.goto(scene.site.url("/plain.html"));
  expect(await page.title()).toBe("Routed");
  await page.goto(scene.site.url("/form.html"));
  expect(await page.title()).toBe("Form");
});

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { BareClient, type CdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";

const mib = 2 ** 20;

let scene: CdpScene;
let session: string;
beforeAll(async () => {
  scene = await startCdpScene();
  session = await scene.open();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/form.html") });
});
afterAll(() => scene?.[Symbol.asyncDispose]());

async function connect(own = session): Promise<BareClient> {
  const client = await BareClient.connect(await scene.cdpUrl(own));
  onTestFinished(() => client[Symbol.dispose]());
  return client;
}

test("messages of 90 MiB are delivered complete in both directions", async () => {
  const client = await connect();
  const page = await client.attach();
  const expression = `"${"x".repeat(90 * mib)}"`;
  const { result } = await client.send("Runtime.evaluate", { expression, returnByValue: true }, page);
  expect(result.result.value.length).toBe(90 * mib);
}, 120_000);

test("a message of more than 100 MiB closes the connection with its specific code", async () => {
  const client = await connect();
  client.socket.send("x".repeat(101 * mib));
  expect((await client.closed).code).toBe(1009);
}, 60_000);

test("a client that stops reading is disconnected without slowing the browser or other clients", async () => {
  const own = await scene.open();
  await scene.rest(`${own}/navigate`, { url: scene.site.url("/form.html") });
  const sleeper = await connect(own);
  const page = await sleeper.attach();
  const other = await connect(own);
  sleeper.socket.pause();
  const expression = `"x".repeat(${8 * mib})`;
  for (let id = 1_000; id < 1_007; id += 1) {
    const params = { expression, returnByValue: true };
    sleeper.socket.send(JSON.stringify({ id, method: "Runtime.evaluate", params, sessionId: page }));
  }
  const places = () =>
    connect(own).then(
      (client) => void client[Symbol.dispose](),
      () => "none",
    );
  const answered = await other.send("Browser.getVersion");
  expect(answered.error).toBeUndefined();
  await expect.poll(places, { timeout: 30_000 }).toBeUndefined();
  const tapped = await scene.rest(`${own}/interact`, { action: { kind: "tap", selector: "#go" }, timeout_ms: 20_000 });
  expect(tapped.body).toMatchObject({ title: "click go 1" });
  sleeper.socket.resume();
  expect(await sleeper.closed).toEqual({ code: 1013, reason: "too_slow" });
}, 120_000);

test("a flooding client is throttled while pings are still answered", async () => {
  const client = await connect();
  const count = 20_000;
  const answered = client.receive(({ id }) => id === count);
  const began = performance.now();
  for (let id = 1; id <= count; id += 1) client.socket.send(JSON.stringify({ id, method: "Browser.getVersion" }));
  const pong = new Promise((resolve) => client.socket.once("pong", resolve));
  client.socket.ping();
  await pong;
  expect((await answered).error).toBeUndefined();
  // 5,000 at once, then 5,000 per second.
  expect(performance.now() - began).toBeGreaterThan(2_500);
}, 120_000);

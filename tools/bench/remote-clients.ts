import { chromium, type Page } from "playwright";
import { WebSocket } from "ws";
import { startCdpScene } from "../../test/support/cdp-proxy-scene.ts";
import { openSlowLink } from "../../test/support/slow-link.ts";
import type { Bench, Row } from "./bench.ts";
import { Client } from "./client.ts";
import { interleave, type Measure, median, spread, timed } from "./samples.ts";

/** Milliseconds added to each round trip. */
const roundTripMs = 30;

/** Steps of the form, for REST and Drive. */
const actions = [
  { kind: "type", selector: "#name", text: "Grace", clear: true },
  { kind: "type", selector: "#empty", text: "Hopper", clear: true },
  { kind: "type", selector: "#secret", text: "COBOL", clear: true },
  { kind: "type", selector: "#notes", text: "a moth", clear: true },
  { kind: "select", selector: "#country", values: ["de"] },
  { kind: "tap", selector: "#check" },
  { kind: "tap", selector: "#twin-shown" },
  { kind: "tap", selector: "#go" },
  { kind: "type", selector: "#name", text: "Ada", clear: true },
  { kind: "tap", selector: "#go" },
];

/** Time to fill a form over a network with a long round trip, with each transport. */
export const remoteClients: Bench = {
  name: "remote-clients",
  title: `a form of ten steps with ${roundTripMs} ms of round trip added, against the same without`,
  async run(scale): Promise<readonly Row[]> {
    await using scene = await startCdpScene();
    const near = Number(new URL(scene.service.url).port);
    await using link = await openSlowLink(near, roundTripMs);
    const session = await scene.open();
    const cdpUrl = new URL(await scene.cdpUrl(session));
    await scene.rest(`${session}/navigate`, { url: scene.site.url("/form.html") });
    const sides: Record<string, Measure> = {};
    for (const [line, port] of [
      ["far", link.port],
      ["near", near],
    ] as const) {
      const url = `http://127.0.0.1:${port}`;
      const socket = `ws://127.0.0.1:${port}`;
      const browser = await chromium.connectOverCDP(`${socket}${cdpUrl.pathname}`, { noDefaults: true });
      const [page] = browser.contexts().flatMap((context) => context.pages());
      if (!page) throw new Error("the session shows no page");
      const client = new Client({ url, key: scene.service.key });
      const drive = await openDrive(`${socket}${session}/drive`, scene.service.key);
      sides[`Playwright over CDP, ${line}`] = timed(() => byPlaywright(page));
      sides[`REST, a request a step, ${line}`] = timed(() => byRest(client, session));
      sides[`Drive over WebSocket, all steps at once, ${line}`] = timed(drive);
    }
    const samples = await interleave(sides, { rounds: scale.of(20, 5), warmUp: 1 });
    return ["Playwright over CDP", "REST, a request a step", "Drive over WebSocket, all steps at once"].map((what) => {
      const [far = [], here = []] = [samples[`${what}, far`], samples[`${what}, near`]];
      const verdict = `${(median(far) - median(here)).toFixed(0)} ms of waiting for the line`;
      return { what, ours: spread(far), bare: spread(here), verdict };
    });
  },
};

async function byPlaywright(page: Page): Promise<void> {
  for (const { kind, selector, text = "", values = [] } of actions) {
    if (kind === "type") await page.fill(selector, text);
    else if (kind === "select") await page.selectOption(selector, values);
    else await page.click(selector);
  }
}

async function byRest(client: Client, session: string): Promise<void> {
  for (const action of actions) await client.post(`${session}/interact`, { action });
}

/** Opens a Drive stream. Returns a function that sends all steps and awaits the last response. */
async function openDrive(url: string, key: string): Promise<() => Promise<void>> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  return async () => {
    const answered = new Promise<void>((resolve, reject) => {
      const receive = (data: unknown): void => {
        const { id, error } = JSON.parse(String(data));
        if (error) reject(new Error(JSON.stringify(error)));
        if (id !== String(actions.length - 1)) return;
        socket.off("message", receive);
        resolve();
      };
      socket.on("message", receive);
    });
    for (const [index, action] of actions.entries())
      socket.send(JSON.stringify({ id: String(index), interact: { action } }));
    await answered;
  };
}

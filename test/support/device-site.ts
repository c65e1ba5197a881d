import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { TestSite } from "./test-site.ts";

/** Device properties that one document or worker reports. Unsupported properties are absent. */
export interface DeviceWord {
  readonly userAgent: string;
  readonly appVersion: string;
  readonly platform: string;
  readonly language: string;
  readonly languages: string;
  readonly locale: string;
  readonly timezone: string;
  readonly offset: number;
  readonly hints?: Readonly<Record<string, unknown>>;
  readonly touchPoints?: number;
  readonly hasTouchEvents?: boolean;
  readonly coarse?: boolean;
  readonly hover?: boolean;
  readonly ratio?: number;
  readonly screen?: string;
  readonly webdriver?: boolean;
}

/** Request headers by which a site could identify the device. */
type DeviceHeaders = Readonly<Record<string, string | undefined>>;

const headerNames = ["user-agent", "accept-language", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"];

/** Runs in documents and workers. */
const describe = `async () => {
  const { userAgent, appVersion, platform, language, languages, userAgentData, maxTouchPoints, webdriver } = navigator;
  const { locale, timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const high = ["architecture", "bitness", "formFactors", "fullVersionList", "model", "platformVersion"];
  const word = { userAgent, appVersion, platform, language, languages: languages.join(), locale, timezone: timeZone,
    offset: new Date(2026, 0, 1).getTimezoneOffset(), hints: await userAgentData?.getHighEntropyValues(high) };
  if (typeof document === "undefined") return word;
  const coarse = matchMedia("(pointer: coarse)").matches, hover = matchMedia("(hover: hover)").matches;
  return { ...word, touchPoints: maxTouchPoints, hasTouchEvents: "ontouchstart" in window, coarse, hover, webdriver,
    ratio: devicePixelRatio, screen: screen.width + "x" + screen.height };
}`;

const scripts: Readonly<Record<string, string>> = {
  "/worker.js": `(${describe})().then((word) => { fetch("/by-worker"); postMessage(word) })`,
  "/shared.js": `onconnect = ({ ports }) => (${describe})().then((word) => { fetch("/by-shared"); ports[0].postMessage(word) })`,
  "/service.js": `addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    addEventListener("message", (event) => event.waitUntil((${describe})().then(async (word) => {
      await fetch("/by-service"); event.source.postMessage(word) })))`,
};

const child = `<!DOCTYPE html><script>(${describe})().then((word) =>
  (opener ?? parent).postMessage({ name: new URLSearchParams(location.search).get("name"), word }, "*"))</script>`;

const page = (other: string) => `<!DOCTYPE html><meta name=viewport content="width=device-width"><title>Device</title>
<script>(async () => {
  const words = { page: await (${describe})() };
  const hear = (name) => new Promise((resolve) => addEventListener("message", ({ data }) => {
    if (data.name === name) resolve(words[name] = data.word);
  }));
  addEventListener("DOMContentLoaded", async () => {
    for (const [name, origin] of [["frame", ""], ["otherFrame", "${other}"]]) {
      const heard = hear(name);
      document.body.append(Object.assign(document.createElement("iframe"), { src: origin + "/child?name=" + name }));
      await heard;
    }
    for (const [name, origin] of [["popup", ""], ["otherPopup", "${other}"]]) {
      const heard = hear(name);
      window.open(origin + "/child?name=" + name);
      await heard;
    }
    const heard = (target) => new Promise((resolve) => { target.onmessage = ({ data }) => resolve(data) });
    words.worker = await heard(new Worker("/worker.js"));
    words.shared = await heard(new SharedWorker("/shared.js").port);
    await navigator.serviceWorker.register("/service.js");
    const { active } = await navigator.serviceWorker.ready;
    active.postMessage("");
    words.service = await heard(navigator.serviceWorker);
    fetch("/words", { method: "POST", body: JSON.stringify(words) });
  });
})()</script>`;

/** Site of two origins whose page makes everything that it opens report its device, including request headers. */
export class DeviceSite extends TestSite {
  #words = Promise.withResolvers<Readonly<Record<string, DeviceWord>>>();
  /** Headers by path of the requests received. */
  readonly headers = new Map<string, DeviceHeaders>();

  /** Forgets earlier reports. Resolves with the next report. */
  expect(): Promise<Readonly<Record<string, DeviceWord>>> {
    this.headers.clear();
    this.#words = Promise.withResolvers();
    return this.#words.promise;
  }

  protected async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "/", headers } = request;
    const script = scripts[url];
    this.headers.set(url, Object.fromEntries(headerNames.map((name) => [name, headers[name]?.toString()])));
    if (url === "/words") this.#words.resolve(JSON.parse(await text(request)));
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    response.end(script ?? (url.startsWith("/child") ? child : page(`http://${this.hosts[1]}`)));
  }
}

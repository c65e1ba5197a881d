import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { bareFlags, browserPath } from "./browsers.ts";

/** Milliseconds for a browser to answer. */
const answerMs = 30_000;

// biome-ignore lint/suspicious/noExplicitAny: results of all commands, each with its own members.
type Result = any;

/** A browser with the flags of the service, driven by CDP over its pipe. */
export class RawBrowser {
  readonly process: ChildProcess;
  /** User data directory, without which full Chromium does not start. */
  readonly #directory: string | undefined;
  readonly #events = new EventEmitter();
  readonly #input: Writable;
  #nextId = 0;

  constructor(runtime: BrowserRuntime = "headless-shell") {
    this.#directory = runtime === "chromium" ? mkdtempSync(join(tmpdir(), "pilothouse-bench-")) : undefined;
    this.process = spawn(browserPath(runtime), bareFlags(runtime, this.#directory), {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      detached: true,
    });
    // Descriptors 3 and 4 are pipes, as requested above.
    const [, , , input, output] = this.process.stdio as unknown as [null, null, null, Writable, Readable];
    this.#input = input;
    this.#events.setMaxListeners(0);
    input.on("error", () => undefined);
    this.#read(output);
  }

  /** Sends a command to the browser or to a page session. Returns the result. */
  async send(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    this.#nextId += 1;
    const id = this.#nextId;
    const answer = this.#await(`answer ${id}`);
    this.#input.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`);
    const { error, result } = await answer;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** Awaits an event of a page's session. */
  event(name: string, sessionId: string): Promise<Result> {
    return this.#await(`event ${sessionId} ${name}`);
  }

  /** Kills the browser and its processes. Resolves when they have ended. */
  async kill(): Promise<void> {
    const { process } = this;
    if (process.pid === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, "exit");
    globalThis.process.kill(-process.pid, "SIGKILL");
    await gone;
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true, maxRetries: 10 });
  }

  async #await(name: string): Promise<Result> {
    const [message] = await once(this.#events, name, { signal: AbortSignal.timeout(answerMs) });
    return message;
  }

  #read(output: Readable): void {
    let rest: Buffer[] = [];
    output.on("data", (chunk: Buffer) => {
      let from = 0;
      for (let end = chunk.indexOf(0); end >= 0; end = chunk.indexOf(0, from)) {
        this.#receive(Buffer.concat([...rest, chunk.subarray(from, end)]).toString());
        rest = [];
        from = end + 1;
      }
      rest.push(chunk.subarray(from));
    });
  }

  #receive(text: string): void {
    const message = JSON.parse(text);
    if (message.id !== undefined) this.#events.emit(`answer ${message.id}`, message);
    else this.#events.emit(`event ${message.sessionId} ${message.method}`, message.params);
  }
}

/** A page of a raw browser. */
export interface RawPage {
  readonly sessionId: string;
  /** Also the id of the page's main frame. */
  readonly targetId: string;
}

/** Returns the initial page of a browser. */
export async function firstPage(browser: RawBrowser): Promise<RawPage> {
  for (;;) {
    const { targetInfos } = await browser.send("Target.getTargets");
    const page = targetInfos.find(({ type }: { type: string }) => type === "page");
    if (page) return attach(browser, page.targetId);
  }
}

/** Opens a page, in the browser context `browserContextId` if given. */
export async function openPage(browser: RawBrowser, browserContextId?: string): Promise<RawPage> {
  const target = { url: "about:blank", width: 1280, height: 720, ...(browserContextId && { browserContextId }) };
  const { targetId } = await browser.send("Target.createTarget", target);
  return attach(browser, targetId);
}

async function attach(browser: RawBrowser, targetId: string): Promise<RawPage> {
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  await browser.send("Page.enable", {}, sessionId);
  return { sessionId, targetId };
}

/** Loads a URL and awaits the load event. */
export async function loadPage(browser: RawBrowser, { sessionId }: RawPage, url: string): Promise<void> {
  const loaded = browser.event("Page.loadEventFired", sessionId);
  await browser.send("Page.navigate", { url }, sessionId);
  await loaded;
}

/** Number of attempts to take a screenshot. */
const maxShots = 20;

/** Takes a PNG of the viewport with the same encoder as the service. */
export async function shootPage(browser: RawBrowser, { sessionId }: RawPage): Promise<Buffer> {
  // Retries, since there may be nothing to show right after the first load.
  for (let left = maxShots; ; left -= 1) {
    try {
      const options = { format: "png", optimizeForSpeed: true };
      const { data } = await browser.send("Page.captureScreenshot", options, sessionId);
      return Buffer.from(data, "base64");
    } catch (thrown) {
      if (left === 1) throw thrown;
    }
  }
}

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type CDPSession,
  chromium,
  type LaunchOptions,
} from "playwright-core";
import type { BrowserRuntime } from "../../src/platform/browser-paths.ts";
import { MOST_TASKS } from "../bounds/session-bounds.ts";
import { browserFlags } from "./browser-flags.ts";
import { readLaunchRecord } from "./launch-record.ts";
import { isRunning } from "./processes.ts";
import type { Slot, SlotEntrance } from "./slot.ts";
import { artifactsDirectory, profileDirectory, temporaryDirectory } from "./slot-block.ts";

const LAUNCHER = fileURLToPath(new URL("launch.sh", import.meta.url));

/** How long a launch may take unless the caller says otherwise. */
const LAUNCH_MS = 30_000;

/** How often an abandoned launch is looked after until it has come to its end. */
const ABANDONED_MS = 50;

/** How often it is looked whether a browser lives that is being launched. */
const LOOK_MS = 250;

/**
 * Full Chromium would ask a person for a name and a password, in a window that nobody sees and behind which the page
 * takes no input. A browser without a way to authenticate shows the page of the 401, as headless shell does.
 */
const NO_PASSWORD_PROMPT = { auth: { schemes: "" } };

/** How to launch a browser. */
export interface BrowserLaunch {
  runtime: BrowserRuntime;
  contextOptions?: BrowserContextOptions;
  extraFlags?: readonly string[];
  /** The browser keeps its files in the slot's profile directory; full Chromium always does. */
  keepsFiles?: boolean;
  /** A file without which the browser must not start; it may come 10 s late. */
  awaited?: string | undefined;
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** Why a browser has gone. */
export interface BrowserExit {
  readonly reason: "killed" | "crashed";
}

/** A browser that runs in a slot, with the one context of its session. */
export interface BrowserProcess {
  readonly browser: Browser;
  readonly context: BrowserContext;
  /** A CDP session of the whole browser. */
  readonly browserSession: CDPSession;
  /** Resolves when the browser has gone: `killed` by us, or `crashed` otherwise. */
  readonly exited: Promise<BrowserExit>;
  /** Kills every process of the slot and resolves when the browser has gone. */
  kill(): Promise<void>;
}

/** Launches a browser in a slot; a launch that fails, is aborted or takes too long leaves no process behind. */
export async function launchBrowser(slot: Slot, launch: BrowserLaunch): Promise<BrowserProcess> {
  const timeout = AbortSignal.timeout(launch.timeoutMs ?? LAUNCH_MS);
  const signal = launch.signal ? AbortSignal.any([launch.signal, timeout]) : timeout;
  const launching = start(slot, launch, signal);
  const over = new AbortController();
  try {
    return await Promise.race([beforeAbort(launching, signal), untilDead(slot, over.signal)]);
  } catch (error) {
    await abandon(slot, launching);
    throw error;
  } finally {
    over.abort();
  }
}

/**
 * Gives a promise's outcome, or rejects when the browser goes first: Playwright leaves a page that is being opened when
 * its browser dies without an answer (seen with 1.65).
 */
export function beforeExit<Value>({ exited }: BrowserProcess, promise: Promise<Value>): Promise<Value> {
  const gone = exited.then(({ reason }) => {
    throw new Error(`the browser was ${reason}`);
  });
  return Promise.race([promise, gone]);
}

async function start(slot: Slot, launch: BrowserLaunch, signal: AbortSignal): Promise<BrowserProcess> {
  const entrance = await slot.ready;
  signal.throwIfAborted();
  const options = launchOptions(slot, entrance, launch);
  if (hasDirectory(launch)) {
    const profile = profileDirectory(slot.directory);
    await writeFile(join(profile, "Local State"), JSON.stringify(NO_PASSWORD_PROMPT), { mode: 0o644 });
    const context = await chromium.launchPersistentContext(profile, { ...launch.contextOptions, ...options });
    const browser = context.browser();
    if (!browser) throw new Error("a persistent context has no browser");
    return follow(slot, browser, context);
  }
  const browser = await chromium.launch(options);
  return follow(slot, browser, await browser.newContext(launch.contextOptions));
}

async function follow(slot: Slot, browser: Browser, context: BrowserContext): Promise<BrowserProcess> {
  const exited = new Promise<BrowserExit>((resolve) => {
    const onExit = () => resolve({ reason: slot.isKilled ? "killed" : "crashed" });
    browser.once("disconnected", onExit);
    if (!browser.isConnected()) onExit();
  });
  const kill = async () => {
    await slot.killProcesses();
    await exited;
  };
  return { browser, context, browserSession: await browser.newBrowserCDPSession(), exited, kill };
}

function hasDirectory({ runtime, keepsFiles = false }: BrowserLaunch): boolean {
  return runtime === "chromium" || keepsFiles;
}

function launchOptions(slot: Slot, entrance: SlotEntrance, launch: BrowserLaunch): LaunchOptions {
  const executable = slot.executables[launch.runtime];
  if (executable === undefined) throw new Error(`no browser for the runtime ${launch.runtime} is installed`);
  return {
    executablePath: LAUNCHER,
    args: [...browserFlags(launch.runtime, entrance.relayPort), ...(launch.extraFlags ?? [])],
    chromiumSandbox: slot.sandbox !== "none",
    artifactsDir: artifactsDirectory(slot.directory),
    env: {
      ...browserEnvironment(slot.directory),
      PILOTHOUSE_BROWSER: executable,
      PILOTHOUSE_CONFINE: entrance.confine.join(" "),
      PILOTHOUSE_RECORD: entrance.record,
      PILOTHOUSE_TASKS: slot.uid === undefined ? "" : String(MOST_TASKS),
      PILOTHOUSE_PROFILE: hasDirectory(launch) ? "directory" : "none",
      PILOTHOUSE_AWAITED: launch.awaited ?? "",
    },
    // The worker ends its sessions itself, and the deadline is ours.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    timeout: 0,
  };
}

/** All that a browser learns of the worker's environment: nothing in it is secret, and it may write nowhere else. */
function browserEnvironment(directory: string): Record<string, string> {
  const { LANG = "C.UTF-8", TZ } = process.env;
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    LANG,
    ...(TZ === undefined ? {} : { TZ }),
    HOME: directory,
    TMPDIR: temporaryDirectory(directory),
    XDG_CONFIG_HOME: join(directory, "config"),
    XDG_CACHE_HOME: join(directory, "cache"),
    XDG_DATA_HOME: join(directory, "data"),
    XDG_RUNTIME_DIR: temporaryDirectory(directory),
  };
}

/** Passes a promise on, unless the signal comes first. */
function beforeAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Rejects when the process that a launch has noted has gone, of which Playwright may say nothing: see `beforeExit`. */
async function untilDead(slot: Slot, signal: AbortSignal): Promise<never> {
  const { record } = await slot.ready;
  // Once more: where Playwright says why it has died, that is to be told.
  for (let timesGone = 0; timesGone < 2; ) {
    await delay(LOOK_MS, undefined, { signal });
    const noted = readLaunchRecord(record);
    timesGone = noted?.startedAt !== undefined && !isRunning(noted) ? timesGone + 1 : 0;
  }
  throw new Error("the browser died while it was launched");
}

/**
 * Kills what an unwanted launch has started and what it may yet start, until it has come to its end: one that has noted
 * its process starts no other.
 */
async function abandon(slot: Slot, launching: Promise<BrowserProcess>): Promise<void> {
  const entrance = await slot.ready.catch(() => undefined);
  if (!entrance) return;
  let isOver = false;
  const end = launching.then(
    (browser) => browser.kill(),
    () => slot.killProcesses(),
  );
  const over = end.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const isNoted = readLaunchRecord(entrance.record) !== undefined;
    await slot.killProcesses();
    if (isNoted) return;
    await Promise.race([over, delay(ABANDONED_MS)]);
  }
}

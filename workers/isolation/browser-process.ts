import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import { Targets } from "../cdp/targets.ts";
import { Wire } from "../cdp/wire.ts";
import { writeBrowserFiles } from "./browser-files.ts";
import { browserFlags } from "./browser-flags.ts";
import { type CaptureExtension, writeCaptureExtension } from "./capture-extension.ts";
import { HiddenPage } from "./hidden-page.ts";
import { systemPath } from "./namespace.ts";
import { mostTasks } from "./session-bounds.ts";
import type { Slot, SlotEntrance } from "./slot.ts";
import { profileDirectory, temporaryDirectory } from "./slot-block.ts";

const launcher = fileURLToPath(new URL("launch.sh", import.meta.url));

/** How long the exit of a browser may take to be told whose processes have all been killed. */
const exitMs = 5_000;

/** How long what a browser has said may take to come after its exit. */
const explainMs = 500;

/** How much is kept of what a browser says while it starts. */
const complaintLength = 2_000;

/** How to launch a browser. */
export interface BrowserLaunch {
  runtime: BrowserRuntime;
  extraFlags?: readonly string[];
  /** The browser keeps its files in the slot's profile directory; full Chromium always does. */
  keepsFiles?: boolean;
  /** Full Chromium has our extension, which captures its tabs. */
  canCapture?: boolean;
  signal: AbortSignal;
  /** Hears of what was thrown by whoever heard a message of the browser, which then counts as dead. */
  onFault?: ((error: unknown) => void) | undefined;
}

/** Why a browser has gone. */
export interface BrowserExit {
  readonly reason: "killed" | "crashed";
}

/** A browser that runs in a slot. */
export interface BrowserProcess {
  /** Its full version. */
  readonly version: string;
  /** Its pipe, for others who use the browser. */
  readonly wire: Wire;
  /** Our own CDP session of the whole browser. */
  readonly browserSession: CdpSession;
  /** Whatever the browser has open, with sessions of ours. */
  readonly targets: Targets;
  /** The page that captures tabs, which is opened when it is wanted; undefined where the browser has none. */
  readonly capturePage: HiddenPage | undefined;
  /** Resolves when the browser has gone: `killed` by us, or `crashed` otherwise. */
  readonly exited: Promise<BrowserExit>;
  /** Resolves when its process has ended. One that ends in order closes its pipe 100 ms before, and writes files until then. */
  readonly ended: Promise<void>;
  /** Kills every process of the slot and resolves when the browser has gone. */
  kill(): Promise<void>;
}

/** A browser ended, or could not be started, before it answered. */
export class LaunchFailure extends Error {
  override readonly name = "LaunchFailure";
}

/**
 * Launches a browser in a slot; a launch that fails or is aborted leaves no process behind. Rejects with a LaunchFailure
 * unless it is aborted.
 */
export async function launchBrowser(slot: Slot, launch: BrowserLaunch): Promise<BrowserProcess> {
  try {
    return await launchOnce(slot, launch);
  } catch (error) {
    launch.signal.throwIfAborted();
    throw new LaunchFailure(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function launchOnce(slot: Slot, launch: BrowserLaunch): Promise<BrowserProcess> {
  const { signal } = launch;
  const entrance = await slot.ready;
  const executable = slot.executables[launch.runtime];
  if (executable === undefined) throw new Error(`no browser for the runtime ${launch.runtime} is installed`);
  if (hasDirectory(launch)) await writeBrowserFiles(slot);
  const hasExtension = launch.canCapture === true && launch.runtime === "chromium";
  const extension = hasExtension ? await writeCaptureExtension(slot) : undefined;
  signal.throwIfAborted();
  const child = spawnBrowser(slot, entrance, { ...launch, extension }, executable);
  const running = new RunningBrowser(slot, child, launch.onFault);
  try {
    return await raceSignal(running.beforeDeath(connect(running, extension && new HiddenPage(extension.page))), signal);
  } catch (error) {
    await running.kill();
    throw error;
  }
}

/** Gives a promise's outcome, or rejects when the browser goes first. */
export function beforeExit<Value>({ exited }: BrowserProcess, promise: Promise<Value>): Promise<Value> {
  const gone = exited.then(({ reason }) => {
    throw new Error(`the browser was ${reason}`);
  });
  return Promise.race([promise, gone]);
}

/** The process of a browser, and its pipe. */
class RunningBrowser {
  readonly wire: Wire;
  readonly exited: Promise<BrowserExit>;
  readonly ended: Promise<void>;
  readonly #slot: Slot;
  readonly #child: ChildProcess;
  readonly #complaints: Readable;
  readonly #leave: (exit: BrowserExit) => void;
  #complaint = "";
  #isGone = false;

  constructor(slot: Slot, child: ChildProcess, onFault: (error: unknown) => void = () => undefined) {
    this.#slot = slot;
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<BrowserExit>();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.exited = promise;
    this.ended = ended;
    this.#leave = resolve;
    const { input, output, complaints } = pipesOf(child);
    complaints.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-complaintLength);
    });
    this.wire = new Wire(input, output, (error) => {
      onFault(error);
      this.#gone();
    });
    output.once("close", () => this.#gone());
    child.once("exit", () => {
      end();
      this.#gone();
    });
    child.once("error", (error) => {
      this.#complaint = error.message;
      this.#gone();
    });
    this.#complaints = complaints;
  }

  /** Gives a promise's outcome, or rejects with what the browser has said when it goes first. */
  beforeDeath<Value>(promise: Promise<Value>): Promise<Value> {
    const died = this.exited.then(() => this.#explain());
    // Commands to a browser that has died fail without saying why: its own last words are the better reason.
    const outcome = promise.catch((error: unknown) => (this.#isGone ? died : Promise.reject(error)));
    return Promise.race([outcome, died]);
  }

  /** Hears no more of what the browser says to nobody. */
  hush(): void {
    this.#complaints.destroy();
  }

  async kill(): Promise<void> {
    const killing = this.#slot.killProcesses();
    // A launch may not have become the slot's user yet.
    this.#child.kill("SIGKILL");
    await killing;
    await within(this.exited, exitMs, undefined);
    this.#gone();
  }

  #gone(): void {
    this.#isGone = true;
    this.#leave({ reason: this.#slot.isKilled ? "killed" : "crashed" });
    this.wire.close();
  }

  async #explain(): Promise<never> {
    if (!this.#complaints.closed) await within(once(this.#complaints, "close"), explainMs, undefined);
    throw new Error(`the browser died while it was launched: ${this.#complaint.trim()}`);
  }
}

async function connect(running: RunningBrowser, capturePage: HiddenPage | undefined): Promise<BrowserProcess> {
  const { wire, exited, ended } = running;
  const targets = new Targets(wire);
  const [{ product }] = await Promise.all([wire.root.send("Browser.getVersion"), targets.start()]);
  running.hush();
  const version = product.slice(product.indexOf("/") + 1);
  return { version, wire, browserSession: wire.root, targets, capturePage, exited, ended, kill: () => running.kill() };
}

function spawnBrowser(
  slot: Slot,
  entrance: SlotEntrance,
  launch: BrowserLaunch & { readonly extension: CaptureExtension | undefined },
  executable: string,
): ChildProcess {
  const flags = browserFlags({
    runtime: launch.runtime,
    sandbox: slot.sandbox,
    relayPort: entrance.relayPort,
    directory: hasDirectory(launch) ? profileDirectory(slot.directory) : undefined,
    extension: launch.extension,
    extra: launch.extraFlags,
  });
  return spawn(launcher, flags, {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    // A process group of its own, which is killed as one.
    detached: true,
    cwd: "/",
    env: {
      ...browserEnvironment(slot.directory),
      PILOTHOUSE_BROWSER: executable,
      PILOTHOUSE_CONFINE: entrance.confine.join(" "),
      PILOTHOUSE_RECORD: entrance.record,
      PILOTHOUSE_TASKS: slot.uid === undefined ? "" : String(mostTasks),
    },
  });
}

function pipesOf({ stdio }: ChildProcess): { input: Writable; output: Readable; complaints: Readable } {
  // All are pipes, as asked for above: 3 is read by the browser, 4 is written by it.
  const [, , complaints, input, output] = stdio as [null, null, Readable, Writable, Readable];
  return { input, output, complaints };
}

function hasDirectory({ runtime, keepsFiles = false }: BrowserLaunch): boolean {
  return runtime === "chromium" || keepsFiles;
}

/** All that a browser learns of the worker's environment: nothing in it is secret, and it may write nowhere else. */
function browserEnvironment(directory: string): Record<string, string> {
  const { LANG = "C.UTF-8", TZ } = process.env;
  return {
    PATH: systemPath,
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

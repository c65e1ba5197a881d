import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import { CdpConnection } from "../cdp/cdp-connection.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import { Targets } from "../cdp/targets.ts";
import { writeBrowserFiles } from "./browser-files.ts";
import { browserFlags } from "./browser-flags.ts";
import { type CaptureExtension, writeCaptureExtension } from "./capture-extension.ts";
import { HiddenPage } from "./hidden-page.ts";
import { systemPath } from "./namespace.ts";
import { maxTasks } from "./session-bounds.ts";
import type { Slot, SlotEntrance } from "./slot.ts";
import { profileDirectory, temporaryDirectory } from "./slot-block.ts";

const launcher = fileURLToPath(new URL("launch.sh", import.meta.url));

/** Milliseconds to wait for the exit event after all processes were killed. */
const exitMs = 5_000;

/** Milliseconds to wait for a browser's remaining stderr output after its exit. */
const explainMs = 500;

/** Characters of stderr output kept during the launch. */
const errorOutputLength = 2_000;

export interface BrowserLaunch {
  runtime: BrowserRuntime;
  extraFlags?: readonly string[];
  /** Whether the browser uses the slot's profile directory. Full Chromium always does. */
  keepsFiles?: boolean;
  /** Whether full Chromium is launched with the extension that captures tabs. Ignored for headless shell. */
  canCapture?: boolean;
  signal: AbortSignal;
  /** Called with an error thrown by a handler of a browser message. The browser then counts as dead. */
  onFault?: ((error: unknown) => void) | undefined;
}

export interface BrowserExit {
  readonly reason: "killed" | "crashed";
}

/** A running browser in an isolation slot. */
export interface BrowserProcess {
  readonly version: string;
  /** CDP connection over the browser's pipe. */
  readonly connection: CdpConnection;
  readonly browserSession: CdpSession;
  /** Targets of the browser, with attached CDP sessions. */
  readonly targets: Targets;
  /** Page that captures tabs, opened on demand. Undefined without the capture extension. */
  readonly capturePage: HiddenPage | undefined;
  /**
   * Resolves when the browser has exited, its pipe has closed, or a message handler has thrown. The reason is `killed`
   * if the worker has killed the slot's processes, otherwise `crashed`.
   */
  readonly exited: Promise<BrowserExit>;
  /**
   * Resolves when the process has ended. After `Browser.close`, the browser closes the pipe 100 ms earlier, and then
   * still writes files.
   */
  readonly ended: Promise<void>;
  /** Kills every process of the slot. Resolves when the browser has exited, or 5 s after the kill. */
  kill(): Promise<void>;
}

/** Thrown if a browser cannot be started, or exits before its first answer. */
export class LaunchFailure extends Error {
  override readonly name = "LaunchFailure";
}

/**
 * Launches a browser in an isolation slot. Rejects with a LaunchFailure, or with the abort reason of the signal. A
 * failed launch leaves no processes.
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
    return await raceSignal(
      running.unlessExited(connect(running, extension && new HiddenPage(extension.page))),
      signal,
    );
  } catch (error) {
    await running.kill();
    throw error;
  }
}

/** Settles like a promise, or rejects if the browser exits first. */
export function beforeExit<Value>({ exited }: BrowserProcess, promise: Promise<Value>): Promise<Value> {
  const gone = exited.then(({ reason }) => {
    throw new Error(reason === "killed" ? "the browser was killed" : "the browser crashed");
  });
  return Promise.race([promise, gone]);
}

/** Browser process with its CDP pipe. */
class RunningBrowser {
  readonly connection: CdpConnection;
  readonly exited: Promise<BrowserExit>;
  readonly ended: Promise<void>;
  readonly #slot: Slot;
  readonly #child: ChildProcess;
  readonly #stderr: Readable;
  readonly #resolveExited: (exit: BrowserExit) => void;
  #errorOutput = "";
  #isGone = false;

  constructor(slot: Slot, child: ChildProcess, onFault: (error: unknown) => void = () => undefined) {
    this.#slot = slot;
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<BrowserExit>();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.exited = promise;
    this.ended = ended;
    this.#resolveExited = resolve;
    const { input, output, stderr } = pipesOf(child);
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-errorOutputLength);
    });
    this.connection = new CdpConnection(input, output, (error) => {
      onFault(error);
      this.#onGone();
    });
    output.once("close", () => this.#onGone());
    child.once("exit", () => {
      end();
      this.#onGone();
    });
    child.once("error", (error) => {
      this.#errorOutput = error.message;
      this.#onGone();
    });
    this.#stderr = stderr;
  }

  /** Settles like a promise, or rejects with the browser's stderr output if the browser exits first. */
  unlessExited<Value>(promise: Promise<Value>): Promise<Value> {
    const died = this.exited.then(() => this.#failWithStderr());
    // Commands to a dead browser fail without a cause. The stderr output is more specific.
    const outcome = promise.catch((error: unknown) => (this.#isGone ? died : Promise.reject(error)));
    return Promise.race([outcome, died]);
  }

  /** Stops reading the browser's stderr. */
  ignoreStderr(): void {
    this.#stderr.destroy();
  }

  async kill(): Promise<void> {
    const killing = this.#slot.killProcesses();
    // The launcher is killed separately, because it may not have switched to the slot's uid yet.
    this.#child.kill("SIGKILL");
    await killing;
    await within(this.exited, exitMs, undefined);
    this.#onGone();
  }

  #onGone(): void {
    this.#isGone = true;
    this.#resolveExited({ reason: this.#slot.isKilled ? "killed" : "crashed" });
    this.connection.close();
  }

  async #failWithStderr(): Promise<never> {
    if (!this.#stderr.closed) await within(once(this.#stderr, "close"), explainMs, undefined);
    throw new Error(`the browser exited during its launch: ${this.#errorOutput.trim()}`);
  }
}

async function connect(running: RunningBrowser, capturePage: HiddenPage | undefined): Promise<BrowserProcess> {
  const { connection, exited, ended } = running;
  const targets = new Targets(connection);
  const [{ product }] = await Promise.all([connection.root.send("Browser.getVersion"), targets.start()]);
  running.ignoreStderr();
  const version = product.slice(product.indexOf("/") + 1);
  return {
    version,
    connection,
    browserSession: connection.root,
    targets,
    capturePage,
    exited,
    ended,
    kill: () => running.kill(),
  };
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
    // The browser has its own process group, so that all its processes can be killed together.
    detached: true,
    cwd: "/",
    env: {
      ...browserEnvironment(slot.directory),
      PILOTHOUSE_BROWSER: executable,
      PILOTHOUSE_CONFINE: entrance.confine.join(" "),
      PILOTHOUSE_RECORD: entrance.record,
      PILOTHOUSE_TASKS: slot.uid === undefined ? "" : String(maxTasks),
    },
  });
}

function pipesOf({ stdio }: ChildProcess): { input: Writable; output: Readable; stderr: Readable } {
  // All descriptors are pipes, as configured above: the browser reads descriptor 3 and writes descriptor 4.
  const [, , stderr, input, output] = stdio as [null, null, Readable, Writable, Readable];
  return { input, output, stderr };
}

function hasDirectory({ runtime, keepsFiles = false }: BrowserLaunch): boolean {
  return runtime === "chromium" || keepsFiles;
}

/** Returns the browser's environment: no secrets, and only paths inside the slot. */
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

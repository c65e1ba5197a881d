import { isDeepStrictEqual } from "node:util";
import type { BrowserRuntime } from "../../src/platform/browser-paths.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import type { SessionProfile } from "../profiles/session-profile.ts";
import { type Device, makeDevice } from "../session/context-options.ts";
import { SessionBrowser } from "../session/session-browser.ts";
import { type BrowserProcess, beforeExit, launchBrowser } from "../slots/browser-process.ts";
import type { Slot } from "../slots/slot.ts";

/** The runtime of sessions whose creator names none. */
const DEFAULT: BrowserRuntime = "headless-shell";

/** How to launch a browser in a slot. */
export interface WarmLaunch {
  readonly runtime: BrowserRuntime;
  readonly device: Device;
  readonly extraFlags: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** What it is launched with, for the session that waits for it. */
  readonly profile: SessionProfile | undefined;
}

/** Gives the device of the warm browsers of each runtime, the default one, and first that of the default runtime. */
export function devicesOf(majors: ReadonlyMap<BrowserRuntime, number>): Map<BrowserRuntime, Device> {
  const devices = [...majors].map(([runtime, major]) => [runtime, makeDevice({}, major)] as const);
  return new Map(devices.sort(([first], [second]) => Number(second === DEFAULT) - Number(first === DEFAULT)));
}

/** A browser in its slot, with the first page of its device open, that has no session yet. */
export class WarmBrowser {
  readonly runtime: BrowserRuntime;
  readonly #device: Device;
  readonly #slot: Slot;
  readonly #process: BrowserProcess;
  readonly #browser: SessionBrowser;

  private constructor({ runtime, device }: WarmLaunch, slot: Slot, process: BrowserProcess, browser: SessionBrowser) {
    this.runtime = runtime;
    this.#device = device;
    this.#slot = slot;
    this.#process = process;
    this.#browser = browser;
  }

  /** Launches one and opens its page; what a failure leaves in the slot is the caller's to clear. */
  static async launch(slot: Slot, launch: WarmLaunch): Promise<WarmBrowser> {
    const { device, profile, ...rest } = launch;
    const { contextOptions } = device;
    const awaited = await profile?.restore();
    const process = await launchBrowser(slot, { ...rest, contextOptions, keepsFiles: profile !== undefined, awaited });
    const browser = new SessionBrowser(slot, process, device, profile);
    const prepared = Promise.all([profile?.attach(process), browser.start()]);
    await raceSignal(beforeExit(process, prepared), launch.signal);
    return new WarmBrowser(launch, slot, process, browser);
  }

  /** Resolves when the browser has died although nobody ended it. */
  get lost(): Promise<string> {
    return this.#browser.lost;
  }

  /** How a session with a device could have it; a persistent context's device cannot be changed. */
  fitOf(device: Device): "adopted" | "context" | undefined {
    if (isDeepStrictEqual(device.contextOptions, this.#device.contextOptions)) return "adopted";
    return this.runtime === "headless-shell" ? "context" : undefined;
  }

  /** Makes it a session's: as it is, or with a context of another device in place of its first one. */
  async adopt(device: Device): Promise<SessionBrowser> {
    if (this.fitOf(device) === "adopted") return this.#browser;
    const context = await this.#process.browser.newContext(device.contextOptions);
    const browser = new SessionBrowser(this.#slot, { ...this.#process, context }, device);
    await beforeExit(this.#process, browser.start());
    this.#browser.leave();
    return browser;
  }

  /** Ends it; resolves when its slot is free again. */
  dispose(): Promise<void> {
    return this.#browser.dispose();
  }
}

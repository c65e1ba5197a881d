import { isDeepStrictEqual } from "node:util";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import type { MediaServer } from "../egress/media-server.ts";
import { type BrowserProcess, beforeExit, launchBrowser } from "../isolation/browser-process.ts";
import { probeRenderers } from "../isolation/confinement.ts";
import type { Slot } from "../isolation/slot.ts";
import type { Device } from "../pages/device/device.ts";
import type { SessionProfile } from "../profiles/session-profile.ts";
import { SessionBrowser } from "./session-browser.ts";

/** How long a browser may take to show that it lives before a session has it; it takes 1 ms on a quiet machine. */
const proofMs = 2_000;

/** How to launch a browser in a slot. */
export interface WarmLaunch {
  readonly runtime: BrowserRuntime;
  readonly device: Device;
  readonly extraFlags: readonly string[];
  /** Where it shows itself when it is asked to. */
  readonly mediaServer?: MediaServer | undefined;
  readonly signal: AbortSignal;
  /** What it is launched with, for the session that waits for it. */
  readonly profile: SessionProfile | undefined;
  /** Hears of what was thrown by whoever heard a message of the browser, which then counts as dead. */
  readonly onFault?: (error: unknown) => void;
}

/** A browser in its slot, with the first page of its device open, that has no session yet. */
export class WarmBrowser {
  readonly runtime: BrowserRuntime;
  readonly #browser: SessionBrowser;
  readonly #process: BrowserProcess;
  #device: Device;

  private constructor({ runtime, device }: WarmLaunch, browser: SessionBrowser, process: BrowserProcess) {
    this.runtime = runtime;
    this.#device = device;
    this.#browser = browser;
    this.#process = process;
  }

  /** Launches one and opens its page; what a failure leaves in the slot is the caller's to clear. */
  static async launch(slot: Slot, launch: WarmLaunch): Promise<WarmBrowser> {
    const { device, profile, mediaServer, ...rest } = launch;
    await profile?.restore(launch.signal);
    const process = await launchBrowser(slot, {
      ...rest,
      keepsFiles: profile !== undefined,
      canCapture: mediaServer !== undefined,
    });
    const browser = new SessionBrowser(slot, process, device, { profile, mediaServer });
    const prepared = Promise.all([profile?.attach(process), browser.start()]);
    await raceSignal(beforeExit(process, prepared), launch.signal);
    return new WarmBrowser(launch, browser, process);
  }

  /** Resolves when the browser has died although nobody ended it. */
  get lost(): Promise<string> {
    return this.#browser.lost;
  }

  /** Makes it a session's, as the device that this has; rejects when it has died meanwhile. */
  async adopt(device: Device): Promise<SessionBrowser> {
    if (isDeepStrictEqual(device, this.#device)) await this.#browser.prove(proofMs);
    else await this.#browser.wear(device);
    this.#device = device;
    return this.#browser;
  }

  /** Rejects if the browser should have its sandbox and its renderers have no seccomp filter. */
  async probe(): Promise<void> {
    const { slot, pages } = this.#browser;
    if (process.platform !== "linux" || slot.sandbox === "none") return;
    // A renderer that answers has its filter already.
    const evaluated = pages.active.cdp.send("Runtime.evaluate", { expression: "0" });
    await beforeExit(
      this.#process,
      evaluated.then(() => probeRenderers(this.#process.wire)),
    );
  }

  /** Ends it; resolves when its slot is free again. */
  dispose(): Promise<void> {
    return this.#browser.dispose();
  }
}

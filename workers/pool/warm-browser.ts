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

/** Timeout in milliseconds of the liveness check before adoption. The check takes 1 ms on a quiet machine. */
const proofMs = 2_000;

export interface WarmLaunch {
  readonly runtime: BrowserRuntime;
  readonly device: Device;
  readonly extraFlags: readonly string[];
  /** Media server to which the browser publishes its pages on request. */
  readonly mediaServer?: MediaServer | undefined;
  readonly signal: AbortSignal;
  /** Profile of the session that waits for this launch. */
  readonly profile: SessionProfile | undefined;
  /** Called with an error thrown by a handler of a browser message. The browser then counts as dead. */
  readonly onFault?: (error: unknown) => void;
}

/** A browser without a session, with its first page open. */
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

  /** Launches a browser and opens its first page. After a failure, the caller must clear the slot. */
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

  /** Resolves with the cause if the browser ends unexpectedly or cannot be used any longer. */
  get lost(): Promise<string> {
    return this.#browser.lost;
  }

  /** Applies the session's device and returns the browser. Rejects if the browser does not answer. */
  async adopt(device: Device): Promise<SessionBrowser> {
    if (isDeepStrictEqual(device, this.#device)) await this.#browser.checkResponsive(proofMs);
    else await this.#browser.applyDevice(device);
    this.#device = device;
    return this.#browser;
  }

  /** Rejects if the browser should be sandboxed but none of its renderers has its own seccomp filter. */
  async probe(): Promise<void> {
    const { slot, pages } = this.#browser;
    if (process.platform !== "linux" || slot.sandbox === "none") return;
    // A renderer installs its filter before it answers.
    const evaluated = pages.active.cdp.send("Runtime.evaluate", { expression: "0" });
    await beforeExit(
      this.#process,
      evaluated.then(() => probeRenderers(this.#process.connection)),
    );
  }

  /** Ends the browser. Resolves when its slot is free. */
  dispose(): Promise<void> {
    return this.#browser.dispose();
  }
}

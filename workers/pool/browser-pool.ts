import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Log } from "../base/log.ts";
import type { MediaServer } from "../egress/media-server.ts";
import type { Slot } from "../isolation/slot.ts";
import type { SlotPool } from "../isolation/slot-pool.ts";
import { type Device, plainDevice } from "../pages/device/device.ts";
import type { SessionProfile } from "../profiles/session-profile.ts";
import { Demand } from "./demand.ts";
import type { SessionBrowser } from "./session-browser.ts";
import { WarmBrowser } from "./warm-browser.ts";

/** Timeout of the probe and of a launch ahead of demand, in milliseconds. */
const launchMs = 30_000;

/** Milliseconds between adjustments to demand, and the pause after a failed launch. */
const tickMs = 5_000;

/**
 * Milliseconds from the end of a `take` to the next launch ahead of demand. A launch blocks the worker for 20 ms and
 * uses a core for 200 ms, which the session's first page also needs.
 */
const soonMs = 400;

/** Runtime of sessions that specify none. */
const defaultRuntime: BrowserRuntime = "headless-shell";

/** How a session got its browser: a warm browser or a new launch. */
export type BrowserOrigin = "adopted" | "launched";

export interface BrowserOptions {
  readonly runtime: BrowserRuntime;
  readonly device: Device;
  readonly signal: AbortSignal;
  /** Creates the profile in the slot before the launch. Warm browsers have no profile. */
  readonly makeProfile: ((slot: Slot) => SessionProfile) | undefined;
}

/** Idle browsers outside the pool that may be disposed of to free slots for sessions. */
export interface SpareBrowsers {
  /** Number of slots that `freeSlot` can free. */
  readonly spare: number;
  /** Disposes of one browser. Resolves when its slot is free. */
  freeSlot(): Promise<void>;
}

export interface BrowserPoolOptions {
  readonly slots: SlotPool;
  /**
   * Installed runtimes. Unless `max` is 0, one browser is kept warm even without demand: of the default runtime if it
   * is installed.
   */
  readonly runtimes: Iterable<BrowserRuntime>;
  /** Maximum number of warm browsers per runtime. */
  readonly max: number;
  readonly extraFlags?: readonly string[];
  /** Media server to which browsers of the runtime `chromium` publish their active page on request. */
  readonly mediaServer?: MediaServer | undefined;
  readonly log: Log;
  readonly spares?: SpareBrowsers | undefined;
  /** Milliseconds between adjustments to demand. Default: `tickMs`. */
  readonly tick?: number;
  /** Returns whether the worker accepts sessions. If not, no browser is kept warm. */
  isOpen(): boolean;
  /** Called with how each session got its browser and how long that took. */
  onReady?(how: BrowserOrigin, seconds: number): void;
}

interface Launching {
  readonly runtime: BrowserRuntime;
  readonly warm: Promise<WarmBrowser | undefined>;
  isClaimed: boolean;
  abort(): void;
}

/** Browser pool of a worker. Launches browsers ahead of demand one at a time, or on request if none is warm. */
export class BrowserPool {
  readonly #options: BrowserPoolOptions;
  readonly #demand: ReadonlyMap<BrowserRuntime, Demand>;
  /** Device of browsers launched ahead. */
  readonly #device = plainDevice();
  readonly #warm: WarmBrowser[] = [];
  readonly #disposing = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  #launching: Launching | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #pausedUntil = 0;
  /** Number of sessions that wait for the slot of an evicted browser. */
  #evicting = 0;
  #launchFails = false;

  constructor(options: BrowserPoolOptions) {
    this.#options = options;
    // The default runtime is first, because there may be too few slots for all runtimes.
    const runtimes = [...options.runtimes].sort(
      (first, second) => Number(second === defaultRuntime) - Number(first === defaultRuntime),
    );
    this.#demand = new Map(
      runtimes.map((runtime, index) => [runtime, new Demand(Number(index === 0), options.max)] as const),
    );
  }

  /** Number of sessions that could start now. Slots of warm and spare browsers count as free. */
  get free(): number {
    const { isClaimed = true } = this.#launching ?? {};
    const { slots, spares } = this.#options;
    return slots.free + (spares?.spare ?? 0) + this.#warm.length + Number(!isClaimed);
  }

  get warm(): number {
    return this.#warm.length;
  }

  /** Whether the last launch ahead failed. */
  get launchFails(): boolean {
    return this.#launchFails;
  }

  /**
   * Launches the first browser, and keeps it warm unless warm browsers are disabled. Rejects if no slot is free, or if
   * the launch or the probe of its sandbox fails.
   */
  async probe(): Promise<void> {
    const { slots, max } = this.#options;
    const [runtime = defaultRuntime] = this.#demand.keys();
    const slot = slots.acquire();
    if (!slot) throw new Error("the worker has no free slot: try again in a moment");
    const signal = AbortSignal.timeout(launchMs);
    const warm = await this.#launchIn(slot, { runtime, device: this.#device, signal });
    try {
      await raceSignal(warm.probe(), signal);
    } catch (error) {
      this.#dispose(warm);
      throw error;
    }
    if (max > 0) this.#keep(warm);
    else await this.#dispose(warm);
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#adjust(), this.#options.tick ?? tickMs);
    this.#adjust();
  }

  /** Disposes of all browsers without a session. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    await this.#launching?.warm;
    for (const warm of this.#warm.splice(0)) this.#dispose(warm);
    await Promise.all(this.#disposing);
  }

  /** Returns a browser with its first page open. Throws `capacity-unavailable` if there is no free slot. */
  async take(browserOptions: BrowserOptions): Promise<SessionBrowser> {
    const began = performance.now();
    // Sessions with a profile cannot use a warm browser, so their requests do not count as demand.
    if (!browserOptions.makeProfile) this.#demand.get(browserOptions.runtime)?.record(began);
    try {
      const warm = browserOptions.makeProfile ? undefined : await this.#takeWarm(browserOptions);
      const { how, browser } = warm ?? (await this.#launch(browserOptions));
      this.#options.onReady?.(how, (performance.now() - began) / 1_000);
      return browser;
    } finally {
      this.#soon ??= setTimeout(() => {
        this.#soon = undefined;
        this.#adjust();
      }, soonMs);
    }
  }

  async #takeWarm(
    browserOptions: BrowserOptions,
  ): Promise<{ how: BrowserOrigin; browser: SessionBrowser } | undefined> {
    const warm = this.#pick(browserOptions.runtime) ?? (await this.#claim(browserOptions));
    if (!warm) return undefined;
    try {
      return { how: "adopted", browser: await raceSignal(warm.adopt(browserOptions.device), browserOptions.signal) };
    } catch (error) {
      this.#dispose(warm);
      browserOptions.signal.throwIfAborted();
      this.#options.log.warn({ err: error }, "failed to adopt a warm browser");
      return undefined;
    }
  }

  #pick(runtime: BrowserRuntime): WarmBrowser | undefined {
    const picked = this.#warm.find((warm) => warm.runtime === runtime);
    if (picked) this.#remove(picked);
    return picked;
  }

  /** Waits for the running launch ahead if its runtime matches and no other session has claimed it. */
  async #claim({ runtime, signal }: BrowserOptions): Promise<WarmBrowser | undefined> {
    const launching = this.#launching;
    if (!launching || launching.isClaimed || launching.runtime !== runtime) return undefined;
    launching.isClaimed = true;
    try {
      return await raceSignal(launching.warm, signal);
    } catch (aborted) {
      void launching.warm.then((warm) => warm && this.#keep(warm));
      throw aborted;
    }
  }

  async #launch(browserOptions: BrowserOptions): Promise<{ how: BrowserOrigin; browser: SessionBrowser }> {
    const slot = this.#options.slots.acquire() ?? (await this.#evict());
    if (!slot)
      throw fail(
        "capacity-unavailable",
        {},
        { retryAfter: 1, detail: "the worker has no free slot: try again in a moment" },
      );
    const warm = await this.#launchIn(slot, browserOptions, browserOptions.makeProfile?.(slot));
    try {
      return { how: "launched", browser: await raceSignal(warm.adopt(browserOptions.device), browserOptions.signal) };
    } catch (error) {
      await this.#dispose(warm);
      throw error;
    }
  }

  /**
   * Frees and acquires a slot: disposes of a spare browser, else of the oldest warm browser, else of an unclaimed
   * launch. Resolves with undefined if no slot is free then.
   */
  async #evict(): Promise<Slot | undefined> {
    const { spares } = this.#options;
    this.#evicting += 1;
    try {
      const [oldest] = this.#warm;
      if (spares && spares.spare > 0) await spares.freeSlot();
      else if (oldest) {
        this.#remove(oldest);
        await this.#dispose(oldest);
      } else if (this.#launching && !this.#launching.isClaimed) await this.#abortLaunch(this.#launching);
      return this.#options.slots.acquire();
    } finally {
      this.#evicting -= 1;
    }
  }

  async #abortLaunch(launching: Launching): Promise<void> {
    launching.isClaimed = true;
    launching.abort();
    const warm = await launching.warm;
    if (warm) this.#dispose(warm);
    await Promise.all(this.#disposing);
  }

  async #launchIn(
    slot: Slot,
    { runtime, device, signal }: Omit<BrowserOptions, "makeProfile">,
    profile?: SessionProfile,
  ): Promise<WarmBrowser> {
    const { extraFlags = [], mediaServer, log } = this.#options;
    const onFault = (error: unknown) =>
      log.error({ err: error, slot: slot.index }, "failed to handle a browser message");
    const launching = WarmBrowser.launch(slot, {
      runtime,
      device,
      extraFlags,
      mediaServer,
      signal,
      profile,
      onFault,
    });
    try {
      return await raceSignal(launching, signal);
    } catch (error) {
      this.#track(this.#clear(slot, launching, profile));
      throw error;
    }
  }

  /** Releases the slot of a failed launch, after the launch has settled and creates no more files or processes. */
  async #clear(slot: Slot, launching: Promise<WarmBrowser>, profile: SessionProfile | undefined): Promise<void> {
    await launching.catch(() => undefined);
    // The profile is discarded before the release. Otherwise, after a crash of the worker, the next session's files
    // could be saved as this profile.
    await (profile?.discard() ?? Promise.resolve()).finally(() => slot.release());
  }

  /** Launches a browser if demand exceeds the warm browsers, or disposes of a surplus browser. */
  #adjust(): void {
    const now = performance.now();
    const isBusy = this.#launching !== undefined || this.#evicting > 0 || now < this.#pausedUntil;
    if (this.#stopping.signal.aborted || isBusy) return;
    for (const [runtime, demand] of this.#demand) {
      const target = this.#options.isOpen() ? demand.target(now) : 0;
      const ready = this.#warm.filter((warm) => warm.runtime === runtime);
      const [oldest] = ready;
      if (ready.length > target && oldest) {
        this.#remove(oldest);
        this.#dispose(oldest);
      } else if (ready.length < target && this.#launchAhead(runtime)) return;
    }
  }

  #launchAhead(runtime: BrowserRuntime): boolean {
    const slot = this.#options.slots.acquire();
    if (!slot) return false;
    const abandoned = new AbortController();
    const unwanted = AbortSignal.any([this.#stopping.signal, abandoned.signal]);
    const signal = AbortSignal.any([unwanted, AbortSignal.timeout(launchMs)]);
    const browserOptions = { runtime, device: this.#device, signal };
    const warm = this.#launchIn(slot, browserOptions).catch((error: unknown) => {
      if (unwanted.aborted) return undefined;
      this.#options.log.warn({ err: error, runtime }, "failed to launch a browser ahead of demand");
      this.#launchFails = true;
      this.#pausedUntil = performance.now() + tickMs;
      return undefined;
    });
    const launching: Launching = { runtime, warm, isClaimed: false, abort: () => abandoned.abort() };
    this.#launching = launching;
    void warm.then((launched) => {
      this.#launching = undefined;
      if (launched) this.#launchFails = false;
      if (launched && !launching.isClaimed) this.#keep(launched);
      this.#adjust();
    });
    return true;
  }

  #keep(warm: WarmBrowser): void {
    this.#warm.push(warm);
    void warm.lost.then(() => {
      // After adoption, the session handles the browser's end.
      if (this.#remove(warm)) this.#dispose(warm);
    });
  }

  #remove(warm: WarmBrowser): boolean {
    const index = this.#warm.indexOf(warm);
    if (index >= 0) this.#warm.splice(index, 1);
    return index >= 0;
  }

  #dispose(warm: WarmBrowser): Promise<unknown> {
    return this.#track(warm.dispose());
  }

  /** Tracks a teardown so that `stop` waits for it. */
  #track(teardown: Promise<unknown>): Promise<unknown> {
    const settled = teardown.catch((error: unknown) => {
      this.#options.log.error({ err: error }, "failed to tear down a browser");
    });
    this.#disposing.add(settled);
    return settled.finally(() => this.#disposing.delete(settled));
  }
}

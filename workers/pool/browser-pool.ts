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

/** How long a launch ahead of demand may take. */
const launchMs = 30_000;

/** How often the pool is fitted to demand when nobody asks, and how long it waits after a launch that failed. */
const tickMs = 5_000;

/**
 * How long after a session has its browser the next one is launched: a launch holds the worker for some 20 ms and takes
 * a core for 200, which the session's first page wants as well.
 */
const soonMs = 400;

/** The runtime of sessions whose creator names none. */
const defaultRuntime: BrowserRuntime = "headless-shell";

/** How a session came to its browser: by one that was launched ahead, or by a launch. */
export type Readiness = "adopted" | "launched";

/** What a session asks of its browser. */
export interface BrowserWish {
  readonly runtime: BrowserRuntime;
  readonly device: Device;
  readonly signal: AbortSignal;
  /** Makes the profile that the browser is launched with, in its slot; no warm browser has one. */
  readonly makeProfile: ((slot: Slot) => SessionProfile) | undefined;
}

export interface BrowserPoolOptions {
  readonly slots: SlotPool;
  /** Those that are installed; one of the default runtime is kept although nobody asks. */
  readonly runtimes: Iterable<BrowserRuntime>;
  /** How many browsers of a runtime are kept at most. */
  readonly most: number;
  /** Flags of every browser besides our own. */
  readonly extraFlags?: readonly string[];
  /** Where full Chromiums show themselves when they are asked to. */
  readonly mediaServer?: MediaServer | undefined;
  readonly log: Log;
  /** Says whether sessions are taken: else no browser is kept for them. */
  isOpen(): boolean;
  /** Hears how each session came to its browser, and how many seconds that took. */
  onReady?(how: Readiness, seconds: number): void;
}

interface Launching {
  readonly runtime: BrowserRuntime;
  readonly warm: Promise<WarmBrowser | undefined>;
  isClaimed: boolean;
  /** Gives it up. */
  abort(): void;
}

/** The browsers of a worker: launched ahead, one at a time, by recent demand; launched when asked for, else. */
export class BrowserPool {
  readonly #options: BrowserPoolOptions;
  readonly #demand: ReadonlyMap<BrowserRuntime, Demand>;
  /** Of a browser that is launched before it is known for whom. */
  readonly #device = plainDevice();
  readonly #warm: WarmBrowser[] = [];
  readonly #disposing = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  #launching: Launching | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #quietUntil = 0;
  /** How many sessions wait for the slot of a browser that they cannot have. */
  #evicting = 0;
  /** The last browser that was launched ahead did not come up. */
  #launchFails = false;

  constructor(options: BrowserPoolOptions) {
    this.#options = options;
    // The default runtime first: the slots may not do for all.
    const runtimes = [...options.runtimes].sort(
      (first, second) => Number(second === defaultRuntime) - Number(first === defaultRuntime),
    );
    this.#demand = new Map(
      runtimes.map((runtime, index) => [runtime, new Demand(Number(index === 0), options.most)] as const),
    );
  }

  /** How many sessions could begin now: a warm browser's slot is as good as free. */
  get free(): number {
    const { isClaimed = true } = this.#launching ?? {};
    return this.#options.slots.free + this.#warm.length + Number(!isClaimed);
  }

  /** How many browsers wait for a session. */
  get warm(): number {
    return this.#warm.length;
  }

  /** Says whether the last browser that was launched ahead did not come up. */
  get launchFails(): boolean {
    return this.#launchFails;
  }

  /** Launches the first browser, which the first session has; rejects where it does not come up in its sandbox. */
  async probe(): Promise<void> {
    const { slots, most } = this.#options;
    const [runtime = defaultRuntime] = this.#demand.keys();
    const slot = slots.acquire();
    if (!slot) throw new Error("the worker has no free slot");
    const signal = AbortSignal.timeout(launchMs);
    const warm = await this.#launchIn(slot, { runtime, device: this.#device, signal });
    try {
      await raceSignal(warm.probe(), signal);
    } catch (error) {
      this.#dispose(warm);
      throw error;
    }
    if (most > 0) this.#keep(warm);
    else await this.#dispose(warm);
  }

  /** Begins to launch ahead. */
  start(): void {
    this.#timer ??= setInterval(() => this.#fit(), tickMs);
    this.#fit();
  }

  /** Ends the browsers that no session has. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    await this.#launching?.warm;
    for (const warm of this.#warm.splice(0)) this.#dispose(warm);
    await Promise.all(this.#disposing);
  }

  /** Gives a session its browser, with its first page open. Throws `capacity-unavailable` when there is no slot for it. */
  async take(wish: BrowserWish): Promise<SessionBrowser> {
    const began = performance.now();
    // What needs a launch of its own is no demand for one ahead.
    if (!wish.makeProfile) this.#demand.get(wish.runtime)?.note(began);
    try {
      const warm = wish.makeProfile ? undefined : await this.#takeWarm(wish);
      const { how, browser } = warm ?? (await this.#launch(wish));
      this.#options.onReady?.(how, (performance.now() - began) / 1_000);
      return browser;
    } finally {
      this.#soon ??= setTimeout(() => {
        this.#soon = undefined;
        this.#fit();
      }, soonMs);
    }
  }

  async #takeWarm(wish: BrowserWish): Promise<{ how: Readiness; browser: SessionBrowser } | undefined> {
    const warm = this.#pick(wish.runtime) ?? (await this.#claim(wish));
    if (!warm) return undefined;
    try {
      return { how: "adopted", browser: await raceSignal(warm.adopt(wish.device), wish.signal) };
    } catch (error) {
      this.#dispose(warm);
      wish.signal.throwIfAborted();
      this.#options.log.warn({ err: error }, "a warm browser could not be used");
      return undefined;
    }
  }

  #pick(runtime: BrowserRuntime): WarmBrowser | undefined {
    const picked = this.#warm.find((warm) => warm.runtime === runtime);
    if (picked) this.#remove(picked);
    return picked;
  }

  /** Waits for the browser that is being launched ahead, if it fits and nobody else waits for it. */
  async #claim({ runtime, signal }: BrowserWish): Promise<WarmBrowser | undefined> {
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

  async #launch(wish: BrowserWish): Promise<{ how: Readiness; browser: SessionBrowser }> {
    const slot = this.#options.slots.acquire() ?? (await this.#evict());
    if (!slot) throw fail("capacity-unavailable", {}, { retryAfter: 1, detail: "the worker has no free slot" });
    const warm = await this.#launchIn(slot, wish, wish.makeProfile?.(slot));
    return { how: "launched", browser: await warm.adopt(wish.device) };
  }

  /** Frees the slot of a browser of another kind that is warm, or about to be. */
  async #evict(): Promise<Slot | undefined> {
    this.#evicting += 1;
    try {
      const [oldest] = this.#warm;
      if (oldest) {
        this.#remove(oldest);
        await this.#dispose(oldest);
      } else if (this.#launching && !this.#launching.isClaimed) await this.#giveUp(this.#launching);
      return this.#options.slots.acquire();
    } finally {
      this.#evicting -= 1;
    }
  }

  async #giveUp(launching: Launching): Promise<void> {
    launching.isClaimed = true;
    launching.abort();
    const warm = await launching.warm;
    if (warm) this.#dispose(warm);
    await Promise.all(this.#disposing);
  }

  async #launchIn(
    slot: Slot,
    { runtime, device, signal }: Omit<BrowserWish, "makeProfile">,
    profile?: SessionProfile,
  ): Promise<WarmBrowser> {
    const { extraFlags = [], mediaServer, log } = this.#options;
    const onFault = (error: unknown) => log.error({ err: error, slot: slot.index }, "a browser's message made a fault");
    const launching = WarmBrowser.launch(slot, {
      ...{ runtime, device, extraFlags, mediaServer, signal, profile, onFault },
    });
    try {
      return await raceSignal(launching, signal);
    } catch (error) {
      this.#track(this.#clear(slot, launching, profile));
      throw error;
    }
  }

  /** Gives back the slot of a launch that failed, once that puts no file and no process there any more. */
  async #clear(slot: Slot, launching: Promise<WarmBrowser>, profile: SessionProfile | undefined): Promise<void> {
    await launching.catch(() => undefined);
    // Before the slot is another session's, whose files would else be taken for the profile's.
    await (profile?.discard() ?? Promise.resolve()).finally(() => slot.release());
  }

  /** Launches the next browser that demand is worth, or ends one that it is not worth any more. */
  #fit(): void {
    const now = performance.now();
    const isHeld = this.#launching !== undefined || this.#evicting > 0 || now < this.#quietUntil;
    if (this.#stopping.signal.aborted || isHeld) return;
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
    const given = new AbortController();
    const unwanted = AbortSignal.any([this.#stopping.signal, given.signal]);
    const signal = AbortSignal.any([unwanted, AbortSignal.timeout(launchMs)]);
    const wish = { runtime, device: this.#device, signal };
    const warm = this.#launchIn(slot, wish).catch((error: unknown) => {
      if (unwanted.aborted) return undefined;
      this.#options.log.warn({ err: error, runtime }, "a browser could not be launched ahead");
      this.#launchFails = true;
      this.#quietUntil = performance.now() + tickMs;
      return undefined;
    });
    const launching: Launching = { runtime, warm, isClaimed: false, abort: () => given.abort() };
    this.#launching = launching;
    void warm.then((launched) => {
      this.#launching = undefined;
      if (launched) this.#launchFails = false;
      if (launched && !launching.isClaimed) this.#keep(launched);
      this.#fit();
    });
    return true;
  }

  #keep(warm: WarmBrowser): void {
    this.#warm.push(warm);
    void warm.lost.then(() => {
      // Once a session has it, its end is the session's.
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

  /** Keeps a teardown until it is over, so that a worker that stops waits for it. */
  #track(teardown: Promise<unknown>): Promise<unknown> {
    const settled = teardown.catch((error: unknown) => {
      this.#options.log.error({ err: error }, "a browser could not be torn down");
    });
    this.#disposing.add(settled);
    return settled.finally(() => this.#disposing.delete(settled));
  }
}

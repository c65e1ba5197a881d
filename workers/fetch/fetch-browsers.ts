import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { BrowserPlan, FetchCommand } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { FetchRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import { Failure, fail, failFields } from "../../src/platform/errors.ts";
import type { Log } from "../base/log.ts";
import { RefRegistry } from "../driver/elements/ref-registry.ts";
import type { BoundsWatchdog } from "../isolation/bounds-watchdog.ts";
import { LaunchFailure } from "../isolation/browser-process.ts";
import { type Device, makeDevice } from "../pages/device/device.ts";
import { CommandProgress } from "../pages/progress.ts";
import type { BrowserPool, SpareBrowsers } from "../pool/browser-pool.ts";
import type { PageContext } from "../pool/page-context.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import { VariableStore } from "../variables/variable-store.ts";
import { type FetchedPage, type FetchScene, fetchPage } from "./page-fetch.ts";

/**
 * Milliseconds. `launch`: launch timeout of a browser. `page`: default timeout of a fetch. `kept`: lifetime of an idle
 * browser. `proof`: timeout for a kept browser to respond. `loss`: wait for the cause of a browser's loss.
 */
const times = { launch: 30_000, page: 30_000, kept: 20_000, proof: 2_000, loss: 500 };

export interface FetchBrowsersOptions {
  readonly browsers: () => BrowserPool;
  readonly runtimes: ReadonlyMap<BrowserRuntime, number>;
  /** Ends browsers that exceed their resource bounds. */
  readonly watchdog: BoundsWatchdog;
  /** Whether errors for refused addresses name the setting that allows the address. */
  readonly showRemedy: boolean;
  readonly log: Log;
  /** Returns whether the worker accepts sessions. If not, fetches are refused and idle browsers are not kept. */
  isOpen(): boolean;
}

/** A browser that runs fetches of one account only. */
interface OwnedBrowser {
  readonly accountId: string;
  readonly plan: BrowserPlan;
  readonly device: Device;
  readonly browser: SessionBrowser;
  /** Aborts when the browser is lost. The abort reason is the failure for running fetches. */
  readonly lost: AbortSignal;
}

/** A browser in which fetches run. */
interface BusyBrowser {
  readonly ready: Promise<OwnedBrowser>;
  running: number;
}

interface KeptBrowser extends OwnedBrowser {
  readonly timer: NodeJS.Timeout;
}

/** Browsers for fetches. Each browser serves one account, and each fetch has its own context. */
export class FetchBrowsers implements SpareBrowsers {
  readonly #options: FetchBrowsersOptions;
  readonly #busy = new Map<string, BusyBrowser>();
  /** Browsers without a fetch, at most one per account, oldest first. */
  readonly #kept = new Set<KeptBrowser>();
  readonly #running = new Set<Promise<FetchedPage>>();
  readonly #disposing = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(options: FetchBrowsersOptions) {
    this.#options = options;
  }

  /** Number of browsers in which fetches run. */
  get busy(): number {
    return this.#busy.size;
  }

  /** Number of fetches that are running. */
  get running(): number {
    return this.#running.size;
  }

  /** Number of slots that `freeSlot` can free. */
  get spare(): number {
    return this.#kept.size + this.#disposing.size;
  }

  /** Frees a slot: waits for a browser in teardown, else disposes of the least recently used kept browser. */
  async freeSlot(): Promise<void> {
    const [disposing] = this.#disposing;
    const [oldest] = this.#kept;
    await (disposing ?? (oldest && this.#drop(oldest)));
  }

  /** Disposes of all idle browsers, for example because the worker needs their memory. */
  dropKept(): void {
    for (const kept of this.#kept) void this.#drop(kept);
  }

  /** Fails the running fetches and disposes of all browsers. */
  async stop(): Promise<void> {
    this.#stopping.abort(stopped());
    await Promise.allSettled(this.#running);
    this.dropKept();
    await Promise.all(this.#disposing);
  }

  /** Fetches a page. `caller` aborts when the client disconnects. */
  fetch(command: FetchCommand, caller: AbortSignal): Promise<FetchedPage> {
    const fetching = this.#fetch(command, caller);
    this.#running.add(fetching);
    fetching.catch(() => undefined).finally(() => this.#running.delete(fetching));
    return fetching;
  }

  async #fetch(command: FetchCommand, caller: AbortSignal): Promise<FetchedPage> {
    const busy = this.#join(command);
    busy.running += 1;
    try {
      const owned = await raceSignal(busy.ready, caller);
      return await this.#fetchIn(owned, command, caller);
    } finally {
      busy.running -= 1;
      if (busy.running === 0) await this.#release(command.browserId, busy);
    }
  }

  #join(command: FetchCommand): BusyBrowser {
    const { isOpen } = this.#options;
    this.#stopping.signal.throwIfAborted();
    if (!isOpen()) throw stopped();
    const joined = this.#busy.get(command.browserId);
    if (joined) return joined;
    const busy: BusyBrowser = { ready: this.#obtainBrowser(command), running: 0 };
    busy.ready.catch(() => undefined);
    this.#busy.set(command.browserId, busy);
    return busy;
  }

  /** Runs a fetch in a context of its own. */
  async #fetchIn(owned: OwnedBrowser, command: FetchCommand, caller: AbortSignal): Promise<FetchedPage> {
    const { browser } = owned;
    const { request = create(FetchRequestSchema) } = command;
    const ended = AbortSignal.any([caller, owned.lost, this.#stopping.signal]);
    using progress = new CommandProgress(request.timeoutMs ?? times.page, [ended]);
    const context = await browser.openContext(progress.signal).catch((thrown: unknown) => {
      ended.throwIfAborted();
      throw thrown instanceof Failure ? thrown : noContext(thrown);
    });
    const outcome = await fetchPage(this.#sceneOf(browser, context, progress, ended), request).then(
      (page) => ({ page }),
      (thrown: unknown) => ({ thrown }),
    );
    const isAlive = await context.dispose();
    // A browser that does not close a context is not used again.
    if (!isAlive) browser.reportLost(await within(browser.lost, times.loss, "the browser did not close a page"));
    if ("page" in outcome && (isAlive || outcome.page.header.complete)) return outcome.page;
    if ("page" in outcome) await outcome.page[Symbol.asyncDispose]();
    caller.throwIfAborted();
    if (!isAlive) throw browserLost(await browser.lost);
    throw "thrown" in outcome ? outcome.thrown : noContext(undefined);
  }

  #sceneOf(browser: SessionBrowser, context: PageContext, progress: CommandProgress, ended: AbortSignal): FetchScene {
    const { pages, challengeWatch } = context;
    const { relay, downloadStore: downloads, hasTouch, viewport, files, fileChoosers, storage: directory } = browser;
    const { showRemedy } = this.#options;
    const secrets = new VariableStore().use([]);
    // Markdown is converted in the browser's first page, which stays blank.
    const page = {
      sessionPage: pages.active,
      converter: browser.pages.active,
      pages,
      challengeWatch,
      refs: new RefRegistry(),
      secrets,
    };
    return {
      ...page,
      progress,
      ended,
      relay,
      downloads,
      showRemedy,
      hasTouch,
      viewport,
      files,
      fileChoosers,
      directory,
    };
  }

  /** Returns the browser kept for the account if it can be reused, otherwise another browser. */
  async #obtainBrowser(command: FetchCommand): Promise<OwnedBrowser> {
    const { plan, accountId } = command;
    if (!plan) throw failFields("validation-failed", { plan: "is required" });
    const device = makeDevice(plan);
    const kept = [...this.#kept].find((each) => each.accountId === accountId);
    if (kept) {
      this.#kept.delete(kept);
      clearTimeout(kept.timer);
      const owned = await this.#reuse(kept, plan, device);
      if (owned) return owned;
    }
    const browser = await this.#take(plan, device);
    for (const target of command.egressAllow) browser.relay.allow.add(target);
    if (plan.proxy) browser.relay.useUpstream(plan.proxy, { check: command.proxyCheck, onChange: () => undefined });
    this.#options.watchdog.watch(browser.slot, browser.reportLost);
    const lost = new AbortController();
    browser.lost.then((detail) => {
      lost.abort(browserLost(detail));
      for (const each of this.#kept) if (each.browser === browser) void this.#drop(each);
    });
    return { accountId, plan, device, browser, lost: lost.signal };
  }

  /**
   * Prepares a kept browser for reuse. If its proxy or runtime differs, or it is not ready in time, disposes of the
   * browser and resolves with undefined.
   */
  async #reuse(kept: OwnedBrowser, plan: BrowserPlan, device: Device): Promise<OwnedBrowser | undefined> {
    const { browser, plan: former } = kept;
    const isSame = isDeepStrictEqual(plan.proxy, former.proxy) && plan.runtime === former.runtime;
    const prepare = () =>
      isDeepStrictEqual(device, kept.device) ? browser.checkResponsive(times.proof) : browser.applyDevice(device);
    const isReady = isSame && (await raceSignal(prepare(), AbortSignal.timeout(times.proof)).then(yes, no));
    if (isReady && !kept.lost.aborted) return { ...kept, plan, device };
    await this.#dispose(kept);
    return undefined;
  }

  async #take({ runtime: name }: BrowserPlan, device: Device): Promise<SessionBrowser> {
    const { browsers, runtimes, log } = this.#options;
    const runtime = [...runtimes.keys()].find((each) => each === name);
    if (runtime === undefined)
      throw fail("driver-not-integrated", {}, { detail: `this worker does not have the runtime ${name}` });
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(times.launch)]);
    try {
      return await browsers().take({ runtime, device, signal, makeProfile: undefined });
    } catch (thrown) {
      if (thrown instanceof Failure) throw thrown;
      this.#stopping.signal.throwIfAborted();
      log.error({ err: thrown, runtime }, "failed to launch a browser for a fetch");
      const detail = signal.aborted ? "the browser did not start in time" : "the browser could not be launched";
      const isWorkers = signal.aborted || thrown instanceof LaunchFailure;
      throw fail("driver-error", isWorkers ? { launch_failed: true } : {}, { detail, cause: thrown });
    }
  }

  /** Keeps a browser after its last fetch if it is still usable. Replaces a browser kept for the same account. */
  async #release(browserId: string, busy: BusyBrowser): Promise<void> {
    this.#busy.delete(browserId);
    const owned = await busy.ready.catch(() => undefined);
    if (owned) this.#keep(owned);
  }

  #keep(owned: OwnedBrowser): void {
    for (const other of this.#kept) if (other.accountId === owned.accountId) void this.#drop(other);
    if (owned.lost.aborted || this.#stopping.signal.aborted || !this.#options.isOpen()) {
      void this.#dispose(owned);
      return;
    }
    const kept: KeptBrowser = { ...owned, timer: setTimeout(() => void this.#drop(kept), times.kept) };
    this.#kept.add(kept);
  }

  async #drop(kept: KeptBrowser): Promise<void> {
    if (!this.#kept.delete(kept)) return;
    clearTimeout(kept.timer);
    await this.#dispose(kept);
  }

  async #dispose({ browser }: OwnedBrowser): Promise<void> {
    const disposed = browser.dispose().catch((error: unknown) => {
      this.#options.log.error({ err: error }, "failed to tear down a browser");
    });
    this.#disposing.add(disposed);
    await disposed;
    this.#disposing.delete(disposed);
  }
}

const yes = (): boolean => true;
const no = (): boolean => false;

const stopped = (): Failure =>
  fail(
    "capacity-unavailable",
    {},
    { retryAfter: 1, detail: "the worker does not accept fetches now: try again in a moment" },
  );

const browserLost = (detail: string): Failure =>
  fail("driver-error", { target_closed: true }, { detail: `${detail} during the fetch: try again` });

const noContext = (cause: unknown): Failure =>
  fail("driver-error", {}, { detail: "the browser could not open a page: try again", cause });

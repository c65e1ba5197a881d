import type { BrowserPlan, CommandContext, LaunchRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Block, BlockKind, SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { Failure, fail, failFields } from "../../src/platform/errors.ts";
import { listKinds } from "../base/config.ts";
import type { Log } from "../base/log.ts";
import type { Placement, ReportedEvent } from "../base/reports.ts";
import { type BlockLists, HostBlock } from "../egress/block-lists.ts";
import type { EgressChange } from "../egress/upstream-watch.ts";
import type { BoundsWatchdog } from "../isolation/bounds-watchdog.ts";
import { LaunchFailure } from "../isolation/browser-process.ts";
import { makeDevice } from "../pages/device/device.ts";
import type { BrowserOptions, BrowserPool } from "../pool/browser-pool.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import type { ProfileStore } from "../profiles/profile-store.ts";
import { SessionProfile } from "../profiles/session-profile.ts";
import { endedFailure } from "./ended-reason.ts";
import { Session } from "./session.ts";

const launchMs = 30_000;

/** Default session lifetime: 24 hours. */
const defaultLifetimeMs = 86_400_000;

export interface SessionTableOptions {
  readonly browsers: BrowserPool;
  /** Major versions of the installed runtimes. */
  readonly runtimes: ReadonlyMap<BrowserRuntime, number>;
  /** Whether errors for refused addresses name the setting that allows the address. */
  readonly showRemedy: boolean;
  readonly log: Log;
  /** Ends sessions that exceed their resource bounds. */
  readonly watchdog: BoundsWatchdog;
  /** The operator's lists of hosts to block. */
  readonly blockLists?: BlockLists;
  /** Store of profiles in transit. Without a store, sessions have no profiles. */
  readonly profiles?: ProfileStore;
  /** Called for spontaneous session events: ends, bot checks and egress changes. */
  onEvent(placement: Placement, event: ReportedEvent): void;
  /** Called with a session that has ended and has a log. */
  onLog?(placement: Placement, session: Pick<Session, "readLog" | "files">): void;
  /** Called when a full worker can accept a session again. */
  onRoom(): void;
}

const blockKinds = { ads: BlockKind.ADS, trackers: BlockKind.TRACKERS } as const;

interface Entry extends Placement {
  /** Absent during the launch. */
  session?: Session;
  readonly ending: AbortController;
}

export class SessionTable {
  readonly #options: SessionTableOptions;
  readonly #entries = new Map<string, Entry>();
  /** Ended sessions that still hold their slots. */
  readonly #teardowns = new Map<Promise<void>, Placement>();
  #drainEnd: number | undefined;
  /** Pressure that closes the worker to new sessions, or undefined. */
  closedBy: string | undefined;

  constructor(options: SessionTableOptions) {
    this.#options = options;
  }

  /** Sessions that are launching or live. Excludes sessions in teardown. */
  get running(): readonly Placement[] {
    return [...this.#entries.values()];
  }

  /** All sessions that hold or await a slot: launching and live sessions, and sessions in teardown. */
  get held(): readonly Placement[] {
    return [...this.running, ...this.#teardowns.values()];
  }

  /** Number of sessions that could start now. */
  get free(): number {
    return this.isOpen ? this.#options.browsers.free : 0;
  }

  /** Whether the last launch ahead of demand failed. */
  get launchFails(): boolean {
    return this.#options.browsers.launchFails;
  }

  /** Whether the worker refuses new sessions because it drains. */
  get isDraining(): boolean {
    return this.#drainEnd !== undefined;
  }

  /** Refuses new sessions, and announces that running ones end after `remainingMs`. */
  drain(remainingMs: number): void {
    this.#drainEnd = performance.now() + remainingMs;
    for (const { session } of this.#entries.values()) session?.planDrainEnd(remainingMs);
  }

  /** Number of queued commands of all sessions. */
  get queued(): number {
    return [...this.#entries.values()].reduce((sum, { session }) => sum + (session?.queued ?? 0), 0);
  }

  get isOpen(): boolean {
    return !this.isDraining && this.closedBy === undefined;
  }

  /**
   * Returns the session of a command. Throws `session-destroyed` if the worker does not run this placement of the
   * session.
   */
  find(context: CommandContext | undefined): Session {
    const entry = this.#entries.get(context?.sessionId ?? "");
    if (!entry?.session || entry.placementEpoch !== context?.placementEpoch) {
      throw fail("session-destroyed", {}, { detail: "this worker does not have the session" });
    }
    return entry.session;
  }

  /** Starts a session in a warm or newly launched browser. Resolves when the first page is open. */
  async create(context: CommandContext, request: LaunchRequest): Promise<void> {
    const { plan } = request;
    if (!plan) throw failFields("validation-failed", { plan: "is required" });
    const { sessionId, placementEpoch } = context;
    const runtime = this.#runtimeOf(plan.runtime);
    const device = makeDevice(plan);
    const hostBlock = this.#hostBlockOf(plan.block);
    const earlier = this.#entries.get(sessionId);
    if (earlier && earlier.placementEpoch < placementEpoch) await this.#endEarlier(earlier);
    if (this.#entries.has(sessionId)) throw fail("conflict", {}, { detail: "the session already runs on this worker" });
    if (!this.isOpen) {
      throw fail(
        "capacity-unavailable",
        {},
        { retryAfter: 1, detail: "the worker does not accept sessions now: try again in a moment" },
      );
    }
    const entry: Entry = { sessionId, placementEpoch, ending: new AbortController() };
    this.#entries.set(sessionId, entry);
    let browser: SessionBrowser | undefined;
    try {
      const browserOptions = {
        runtime: runtime.name,
        device,
        makeProfile: this.#profileMaker(context, request, runtime.major),
      };
      browser = await this.#takeBrowser(browserOptions, entry, context.timeoutMs || launchMs);
      for (const target of request.egressAllow) browser.relay.allow.add(target);
      if (request.allowedDomains.length > 0) browser.relay.restrictTo(request.allowedDomains);
      if (hostBlock) browser.relay.block(hostBlock);
      const onChange = (value: EgressChange) => this.#options.onEvent(entry, { case: "egressChanged", value });
      browser.startLog(request.logs);
      if (plan.proxy) browser.relay.useUpstream(plan.proxy, { check: request.proxyCheck, onChange });
      entry.session = this.#makeSession(plan, request, browser, entry);
      if (this.#drainEnd !== undefined) entry.session.planDrainEnd(this.#drainEnd - performance.now());
      const { slot, reportLost } = browser;
      this.#options.watchdog.watch(slot, reportLost);
    } catch (thrown) {
      if (this.#entries.get(sessionId) === entry) this.#entries.delete(sessionId);
      if (browser) this.#track(entry, browser.dispose());
      throw thrown;
    }
  }

  /** Ends a placement of a session, if present. The teardown continues in the background. */
  destroy(placement: Placement, reason: SessionEndedReason = SessionEndedReason.DESTROYED): void {
    const entry = this.#entries.get(placement.sessionId);
    if (!entry || entry.placementEpoch !== placement.placementEpoch) return;
    this.#entries.delete(entry.sessionId);
    entry.ending.abort(endedFailure(reason));
    if (!entry.session) return;
    this.#track(entry, entry.session.end(reason));
    if (entry.session.isLogged) this.#options.onLog?.(entry, entry.session);
  }

  /**
   * Ends all sessions because the worker stops. Reports the end of running sessions. Pending launches fail and may be
   * retried.
   */
  async stop(reason: SessionEndedReason): Promise<void> {
    const detail = "the worker was stopped: try again in a moment";
    for (const entry of this.#entries.values()) {
      if (entry.session) this.#options.onEvent(entry, { case: "ended", value: { reason, detail } });
      else entry.ending.abort(fail("capacity-unavailable", {}, { retryAfter: 1, detail }));
    }
    await this.endAll(reason);
  }

  /**
   * Ends all sessions. Resolves when the teardowns of live sessions are complete. The browser pool tears down launches.
   */
  async endAll(reason: SessionEndedReason): Promise<void> {
    for (const entry of this.running) this.destroy(entry, reason);
    await Promise.allSettled(this.#teardowns.keys());
  }

  /** Ends an earlier placement of a session. Resolves when the earlier placement's slot is free. */
  async #endEarlier(earlier: Entry): Promise<void> {
    this.destroy(earlier);
    const teardowns = [...this.#teardowns].filter(([, { sessionId }]) => sessionId === earlier.sessionId);
    await Promise.all(teardowns.map(([teardown]) => teardown));
  }

  async #takeBrowser(
    browserOptions: Pick<BrowserOptions, "runtime" | "device" | "makeProfile">,
    entry: Entry,
    timeoutMs: number,
  ): Promise<SessionBrowser> {
    const signal = AbortSignal.any([entry.ending.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await this.#options.browsers.take({ ...browserOptions, signal });
    } catch (thrown) {
      if (thrown instanceof Failure) throw thrown;
      if (entry.ending.signal.aborted) throw entry.ending.signal.reason;
      this.#options.log.error({ err: thrown, runtime: browserOptions.runtime }, "failed to launch a browser");
      const detail = signal.aborted ? "the browser did not start in time" : "the browser could not be launched";
      // A failed launch is retried on another worker. Other failures may be caused by the profile or the plan, and
      // would occur there too.
      const isWorkers = signal.aborted || thrown instanceof LaunchFailure;
      throw fail("driver-error", isWorkers ? { launch_failed: true } : {}, { detail, cause: thrown });
    }
  }

  /** Returns a factory for the session's profile, or undefined if the session has no profile. */
  #profileMaker(
    { sessionId, placementEpoch }: CommandContext,
    { plan, profileVersion }: LaunchRequest,
    browserMajor: number,
  ): BrowserOptions["makeProfile"] {
    const { profiles: profileStore, log } = this.#options;
    if (!profileStore || !plan?.profileId) return undefined;
    const { profileId } = plan;
    const profile = { sessionId, placementEpoch, profileId, version: profileVersion, engine: "chromium" };
    return (slot) => new SessionProfile({ profileStore, slot, profile, browserMajor, log });
  }

  #makeSession(
    plan: BrowserPlan,
    { lifetimeMs, endsWithClients }: LaunchRequest,
    browser: SessionBrowser,
    entry: Entry,
  ): Session {
    return new Session({
      id: entry.sessionId,
      placementEpoch: entry.placementEpoch,
      browser,
      lifetimeMs: lifetimeMs || defaultLifetimeMs,
      idleTimeoutMs: plan.idleTimeoutSeconds * 1_000,
      endsWithClients,
      showRemedy: this.#options.showRemedy,
      onChallenge: plan.onChallenge,
      onEvent: (event) => this.#options.onEvent(entry, event),
      onEnded: (end) => {
        this.#options.onEvent(entry, { case: "ended", value: end });
        this.destroy(entry, end.reason);
      },
    });
  }

  #hostBlockOf(block: Block | undefined): HostBlock | undefined {
    if (!block) return undefined;
    const { blockLists = new Map() } = this.#options;
    const kinds = listKinds.filter((kind) => block.kinds.includes(blockKinds[kind]));
    const missing = kinds.find((kind) => !blockLists.has(kind));
    if (missing !== undefined) {
      const detail = `this worker has no list of ${missing}: the operator can add one with BLOCK_LISTS`;
      throw fail("driver-not-integrated", {}, { detail });
    }
    return kinds.length > 0 || block.hosts.length > 0 ? new HostBlock(block.hosts, kinds, blockLists) : undefined;
  }

  #runtimeOf(name: string): { name: BrowserRuntime; major: number } {
    for (const [runtime, major] of this.#options.runtimes) if (runtime === name) return { name: runtime, major };
    throw fail("driver-not-integrated", {}, { detail: `this worker does not have the runtime ${name}` });
  }

  /** Tracks a teardown until it is complete, so that `endAll` waits for it and the slot counts as held. */
  #track({ sessionId, placementEpoch }: Placement, teardown: Promise<void>): void {
    const settled = teardown.catch((error: unknown) => {
      this.#options.log.error({ err: error, session_id: sessionId }, "failed to tear down a session");
    });
    this.#teardowns.set(settled, { sessionId, placementEpoch });
    void settled.then(() => {
      const wasFull = this.#options.browsers.free <= 1;
      this.#teardowns.delete(settled);
      if (wasFull) this.#options.onRoom();
    });
  }
}

import { within } from "../../src/platform/deadline.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import type { OwnTarget } from "../cdp/targets.ts";
import type { Changes } from "./changes.ts";
import { PageTraffic } from "./page-traffic.ts";

export interface Frame {
  readonly id: string;
  /** Undefined for the main frame. */
  readonly parentId: string | undefined;
  readonly url: string;
  /** Our session of the frame's process. */
  readonly session: CdpSession;
}

export interface TabListener {
  /** Called for the page's session, and for the session of each process with frames of the page. */
  onSession?(session: CdpSession): void;
  /** Called when a frame commits a document, or its document changes its address. */
  onNavigated?(frame: Frame, isMain: boolean): void;
  onFrameGone?(frameId: string): void;
  /** Called when the main frame's load event has fired. */
  onLoaded?(): void;
  onCrashed?(): void;
  onClosed?(): void;
}

export type LoadState = "commit" | "domcontentloaded" | "load";

/** Load states by the name of their lifecycle event. */
const stateNames: Readonly<Record<string, LoadState>> = { DOMContentLoaded: "domcontentloaded", load: "load" };

/** Longest wait in milliseconds for a new tab to report its state, which takes about 10 ms on an idle machine. */
const readyMs = 2_000;

/** Navigation types that keep the document. */
const sameDocument = /sameDocument$/i;

/** Scheme of the browser's error pages. */
const errorPage = "chrome-error:";

/** Maximum number of loader ids that `hasShown` remembers. */
const maxShown = 16;

/**
 * Maximum number of stored characters of an address: one more than the longest address that `urlGlob` matches. Pages
 * can set addresses of up to 2 MiB.
 */
const addressLength = 8_193;

/** One tab of the browser, tracked through the CDP sessions of its page and frames. */
export class Tab {
  readonly target: OwnTarget;
  readonly changes: Changes;
  readonly traffic: PageTraffic;
  /** Number of main-frame navigations that the page requested. */
  requested = 0;
  /** Number of main-frame navigations to a new document that have started, whatever their cause. */
  started = 0;
  /** Number of main-frame navigations that have committed. */
  committed = 0;
  /** Number of windows and tabs that the page requested. */
  windows = 0;
  /**
   * Resolves when the tab has reported its state, or after `readyMs`. Navigations must wait for this, because settings
   * reach the process of the next document only after the first process has answered.
   */
  readonly ready: Promise<unknown>;
  isCrashed = false;
  isClosed = false;
  readonly #frames = new Map<string, Frame>();
  readonly #sessions = new Set<CdpSession>();
  readonly #listeners: TabListener[] = [];
  #loaderId = "";
  /** Loader id of the pending navigation. */
  #pendingLoaderId: string | undefined;
  readonly #shown: string[] = [];
  #states = new Set<LoadState>();

  constructor(target: OwnTarget, changes: Changes) {
    this.target = target;
    this.changes = changes;
    this.traffic = new PageTraffic(target.info.targetId, changes);
    this.#frames.set(
      this.mainFrameId,
      this.#frameOf(this.mainFrameId, undefined, target.info.url || "about:blank", target.session),
    );
    this.#followPage(target.session);
    this.ready = within(this.addSession(target.session), readyMs, undefined);
  }

  /** Our session of the page. */
  get session(): CdpSession {
    return this.target.session;
  }

  /** The main frame's id equals the target id. */
  get mainFrameId(): string {
    return this.target.info.targetId;
  }

  get url(): string {
    return this.#frames.get(this.mainFrameId)?.url ?? "";
  }

  /** Whether the tab shows the browser's error page, which may commit after the failure was reported. */
  get isErrorPage(): boolean {
    return this.url.startsWith(errorPage);
  }

  /**
   * Whether a navigation of the main frame is pending. Until the navigation ends, the browser runs none of our scripts.
   */
  get isLeaving(): boolean {
    return this.#pendingLoaderId !== undefined;
  }

  /** Whether one of the last `maxShown` documents has this loader id. */
  hasShown(loaderId: string): boolean {
    return this.#shown.includes(loaderId);
  }

  /** All attached frames, including the main frame. */
  get frames(): Iterable<Frame> {
    return this.#frames.values();
  }

  frame(id: string): Frame | undefined {
    return this.#frames.get(id);
  }

  /** Returns the session of a frame's process. For an unknown frame, returns the page's session. */
  sessionOf(frameId: string): CdpSession {
    return this.#frames.get(frameId)?.session ?? this.session;
  }

  /** Sessions of the page and of all its frames. */
  get sessions(): Iterable<CdpSession> {
    return this.#sessions;
  }

  /** Adds a listener and immediately calls its `onSession` for each existing session. */
  listen(listener: TabListener): void {
    this.#listeners.push(listener);
    for (const session of this.#sessions) listener.onSession?.(session);
  }

  /** Throws if the tab has crashed or closed. */
  assertOpen(): void {
    if (this.isCrashed) throw crashedFailure();
    if (this.isClosed) throw closedFailure();
  }

  /** Whether the document is still loading, or a navigation of the main frame is pending. */
  get isLoading(): boolean {
    return this.isLeaving || !this.#states.has("load");
  }

  /**
   * Whether the document has reached a load state. False while a navigation is pending. Throws if the tab has crashed
   * or closed.
   */
  hasReached(state: LoadState): boolean {
    this.assertOpen();
    return !this.isLeaving && (state === "commit" || this.#states.has(state));
  }

  /**
   * Tracks the frames that a session reports, and enables the session's events. Resolves when the browser has answered.
   */
  addSession(session: CdpSession): Promise<unknown> {
    this.#sessions.add(session);
    session.on("Page.frameAttached", ({ frameId, parentFrameId }) => this.#onAttached(frameId, parentFrameId, session));
    session.on("Page.frameNavigated", ({ frame }) => this.#onNavigated(frame, session));
    session.on("Page.navigatedWithinDocument", ({ frameId, url }) => this.#onAddress(frameId, url, session));
    session.on("Page.frameDetached", ({ frameId, reason }) => {
      if (reason === "remove") this.#onFrameGone(frameId);
    });
    this.traffic.follow(session);
    for (const listener of this.#listeners) listener.onSession?.(session);
    return prepare(session);
  }

  /** Removes the session of a process in which the page has no frames left. */
  dropSession(session: CdpSession): void {
    this.#sessions.delete(session);
    this.traffic.drop(session);
    this.changes.notify();
  }

  /** Called when the browser has closed the tab. */
  close(): void {
    this.isClosed = true;
    for (const listener of this.#listeners) listener.onClosed?.();
    this.changes.notify();
  }

  #followPage(session: CdpSession): void {
    session.on("Page.lifecycleEvent", (event) => this.#onLifecycle(event));
    session.on("Page.windowOpen", () => {
      this.windows += 1;
    });
    session.on("Page.frameRequestedNavigation", ({ frameId, disposition }) => {
      if (disposition === "newTab" || disposition === "newWindow") this.windows += 1;
      if (disposition !== "currentTab" || frameId !== this.mainFrameId) return;
      this.requested += 1;
      this.changes.notify();
    });
    session.on("Page.frameStartedNavigating", ({ frameId, loaderId, navigationType }) => {
      if (frameId !== this.mainFrameId || sameDocument.test(navigationType)) return;
      this.started += 1;
      this.#pendingLoaderId = loaderId;
      this.changes.notify();
    });
    session.on("Page.frameStoppedLoading", ({ frameId }) => {
      if (frameId === this.mainFrameId) this.#endNavigation();
    });
    session.on("Inspector.targetCrashed", () => {
      this.isCrashed = true;
      for (const listener of this.#listeners) listener.onCrashed?.();
      this.#endNavigation();
    });
  }

  #onAttached(id: string, parentId: string, session: CdpSession): void {
    if (!this.#frames.has(id)) this.#frames.set(id, this.#frameOf(id, parentId, "", session));
  }

  #onNavigated({ id, parentId, loaderId, url, urlFragment = "" }: CommittedFrame, session: CdpSession): void {
    const isMain = id === this.mainFrameId;
    const known = this.#frames.get(id);
    const frame = this.#frameOf(id, parentId ?? known?.parentId, `${url}${urlFragment}`, session);
    if (isMain) {
      // The previous document's frames are gone. The browser may not report each removal.
      for (const { id: other } of [...this.#frames.values()]) if (other !== id) this.#onFrameGone(other);
      this.#loaderId = loaderId;
      this.#states = new Set();
      this.committed += 1;
      this.#shown.push(loaderId);
      if (this.#shown.length > maxShown) this.#shown.shift();
      this.traffic.endOthers(loaderId);
    }
    this.#frames.set(id, frame);
    for (const listener of this.#listeners) listener.onNavigated?.(frame, isMain);
    if (!isMain) return;
    // The error page of a failed navigation may commit while the next navigation is pending.
    if (loaderId === this.#pendingLoaderId || !this.isErrorPage) this.#endNavigation();
    else this.changes.notify();
  }

  #onAddress(frameId: string, url: string, session: CdpSession): void {
    const frame = this.#frameOf(frameId, this.#frames.get(frameId)?.parentId, url, session);
    this.#frames.set(frameId, frame);
    for (const listener of this.#listeners) listener.onNavigated?.(frame, frameId === this.mainFrameId);
    this.changes.notify();
  }

  #onFrameGone(frameId: string): void {
    if (!this.#frames.delete(frameId)) return;
    for (const listener of this.#listeners) listener.onFrameGone?.(frameId);
  }

  #onLifecycle({ frameId, loaderId, name }: CdpEvents["Page.lifecycleEvent"]): void {
    const state = stateNames[name];
    if (frameId !== this.mainFrameId || state === undefined) return;
    // If the document is older than our session, only its lifecycle events are reported.
    this.#loaderId ||= loaderId;
    if (loaderId !== this.#loaderId) return;
    this.#states.add(state);
    if (state === "load") for (const listener of this.#listeners) listener.onLoaded?.();
    this.changes.notify();
  }

  /** Called when the main frame's navigation has ended, with or without a new document. */
  #endNavigation(): void {
    this.#pendingLoaderId = undefined;
    this.changes.notify();
  }

  #frameOf(id: string, parentId: string | undefined, url: string, session: CdpSession): Frame {
    return { id, parentId, url: url.slice(0, addressLength), session };
  }
}

type CommittedFrame = CdpEvents["Page.frameNavigated"]["frame"];

/** Enables the events of a page or out-of-process frame. Ignores errors: the end of a target has its own event. */
function prepare(session: CdpSession): Promise<unknown> {
  return Promise.allSettled([
    session.send("Page.enable"),
    session.send("Page.setLifecycleEventsEnabled", { enabled: true }),
    // Response bodies are not kept: they would cost renderer memory and are never read.
    session.send("Network.enable", { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 }),
    session.send("Inspector.enable"),
    session.send("Page.setInterceptFileChooserDialog", { enabled: true }),
  ]);
}

/** Creates the failure for a page with a crashed renderer. */
export function crashedFailure(): Failure {
  const detail = "the page has crashed: call navigate to restart it";
  return fail("driver-error", { target_crashed: true }, { detail });
}

/** Creates the failure for a page that closed during a command. */
export function closedFailure(): Failure {
  return fail(
    "driver-error",
    { target_closed: true },
    { detail: "the page has closed: use another page, or open one" },
  );
}

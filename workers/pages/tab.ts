import { within } from "../../src/platform/deadline.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import type { OwnTarget } from "../cdp/targets.ts";
import type { Changes } from "./changes.ts";
import { PageTraffic } from "./page-traffic.ts";

/** A frame of a page. */
export interface Frame {
  readonly id: string;
  /** Undefined for the main frame. */
  readonly parentId: string | undefined;
  readonly url: string;
  /** Our session of the process that it is in. */
  readonly session: CdpSession;
}

/** Hears what happens in a tab. */
export interface TabListener {
  /** There is a session: the page's own, or that of frames in another process. */
  onSession?(session: CdpSession): void;
  /** A frame shows another document, or goes by another address within the one that it shows. */
  onNavigated?(frame: Frame, isMain: boolean): void;
  onFrameGone?(frameId: string): void;
  /** The document of the main frame has loaded, with all that belongs to it. */
  onLoaded?(): void;
  onCrashed?(): void;
  onClosed?(): void;
}

/** How far a document has come. */
export type LoadState = "commit" | "domcontentloaded" | "load";

/** The browser's names for how far a document has come. */
const stateNames: Readonly<Record<string, LoadState>> = { DOMContentLoaded: "domcontentloaded", load: "load" };

/** How long a tab may take to tell of itself: some 10 ms on a quiet machine. */
const readyMs = 2_000;

/** Kinds of navigations that keep the document. */
const sameDocument = /sameDocument$/i;

/** Where the browser goes when a page cannot be shown. */
const errorPage = "chrome-error:";

/** How many of the documents that a page has shown last are known by name. */
const shownKept = 16;

/** How much is kept of an address, more than anybody compares it with: a page can give itself 2 MiB. */
const addressLength = 8_193;

/** One tab of the browser, as our sessions of its page, and of its frames in other processes, tell of it. */
export class Tab {
  readonly target: OwnTarget;
  readonly changes: Changes;
  readonly traffic: PageTraffic;
  /** Navigations of the main frame that were asked for by the page, that were begun by anybody, and that have come to a document. */
  requested = 0;
  started = 0;
  committed = 0;
  /** Windows that the page has asked for, and links that it follows into another tab. */
  windows = 0;
  /**
   * Resolves when it tells of itself: it is not to be sent anywhere before, since what it was told goes on to the next
   * process only once the first has answered. A tab that hangs is not waited for.
   */
  readonly ready: Promise<unknown>;
  /** The renderer has gone. */
  isCrashed = false;
  isClosed = false;
  readonly #frames = new Map<string, Frame>();
  readonly #sessions = new Set<CdpSession>();
  readonly #listeners: TabListener[] = [];
  #loaderId = "";
  /** The document that the main frame is on its way to. */
  #destination: string | undefined;
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

  /** The browser calls a page's main frame as it calls the page. */
  get mainFrameId(): string {
    return this.target.info.targetId;
  }

  get url(): string {
    return this.#frames.get(this.mainFrameId)?.url ?? "";
  }

  /** The browser's own page about a navigation that has failed. It may come after its failure has been answered. */
  get isErrorPage(): boolean {
    return this.url.startsWith(errorPage);
  }

  /** A navigation of the main frame has begun and not come to its end: until then the browser answers no script of ours. */
  get isLeaving(): boolean {
    return this.#destination !== undefined;
  }

  /** Whether a document, by its loader's name, has been shown lately. */
  hasShown(loaderId: string): boolean {
    return this.#shown.includes(loaderId);
  }

  /** All frames that show a document. */
  get frames(): Iterable<Frame> {
    return this.#frames.values();
  }

  /** A frame that shows a document. */
  frame(id: string): Frame | undefined {
    return this.#frames.get(id);
  }

  /** Our session of a frame: its own where it is in another process than the page. */
  sessionOf(frameId: string): CdpSession {
    return this.#frames.get(frameId)?.session ?? this.session;
  }

  /** Sessions of the page and of all its frames. */
  get sessions(): Iterable<CdpSession> {
    return this.#sessions;
  }

  /** Tells of what happens from now on, and of the sessions that there are. */
  listen(listener: TabListener): void {
    this.#listeners.push(listener);
    for (const session of this.#sessions) listener.onSession?.(session);
  }

  /** Throws what is answered of a page that shows nothing any more. */
  assertShown(): void {
    if (this.isCrashed) throw crashedFailure();
    if (this.isClosed) throw closedFailure();
  }

  /** Whether its document, or another in its place, is still to come whole. */
  get isLoading(): boolean {
    return this.isLeaving || !this.#states.has("load");
  }

  /** Whether the document has come so far; not while another is on its way to its place. */
  hasReached(state: LoadState): boolean {
    this.assertShown();
    return !this.isLeaving && (state === "commit" || this.#states.has(state));
  }

  /** Follows frames in another process, from before their first script; resolves when they tell of themselves. */
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

  /** The frames of another process have gone, or gone on elsewhere. */
  dropSession(session: CdpSession): void {
    this.#sessions.delete(session);
    this.traffic.drop(session);
    this.changes.tell();
  }

  /** The browser has closed it. */
  close(): void {
    this.isClosed = true;
    for (const listener of this.#listeners) listener.onClosed?.();
    this.changes.tell();
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
      this.changes.tell();
    });
    session.on("Page.frameStartedNavigating", ({ frameId, loaderId, navigationType }) => {
      if (frameId !== this.mainFrameId || sameDocument.test(navigationType)) return;
      this.started += 1;
      this.#destination = loaderId;
      this.changes.tell();
    });
    session.on("Page.frameStoppedLoading", ({ frameId }) => {
      if (frameId === this.mainFrameId) this.#arrive();
    });
    session.on("Inspector.targetCrashed", () => {
      this.isCrashed = true;
      for (const listener of this.#listeners) listener.onCrashed?.();
      this.#arrive();
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
      // Frames of the document before are gone, whether or not each was told of.
      for (const { id: other } of [...this.#frames.values()]) if (other !== id) this.#onFrameGone(other);
      this.#loaderId = loaderId;
      this.#states = new Set();
      this.committed += 1;
      this.#shown.push(loaderId);
      if (this.#shown.length > shownKept) this.#shown.shift();
      this.traffic.forgetOthers(loaderId);
    }
    this.#frames.set(id, frame);
    for (const listener of this.#listeners) listener.onNavigated?.(frame, isMain);
    if (!isMain) return;
    // The page about a failed navigation may come when the next one is on its way already.
    if (loaderId === this.#destination || !this.isErrorPage) this.#arrive();
    else this.changes.tell();
  }

  #onAddress(frameId: string, url: string, session: CdpSession): void {
    const frame = this.#frameOf(frameId, this.#frames.get(frameId)?.parentId, url, session);
    this.#frames.set(frameId, frame);
    for (const listener of this.#listeners) listener.onNavigated?.(frame, frameId === this.mainFrameId);
    this.changes.tell();
  }

  #onFrameGone(frameId: string): void {
    if (!this.#frames.delete(frameId)) return;
    for (const listener of this.#listeners) listener.onFrameGone?.(frameId);
  }

  #onLifecycle({ frameId, loaderId, name }: WireEvents["Page.lifecycleEvent"]): void {
    const state = stateNames[name];
    if (frameId !== this.mainFrameId || state === undefined) return;
    // A page that was there before us tells of its document afterwards.
    this.#loaderId ||= loaderId;
    if (loaderId !== this.#loaderId) return;
    this.#states.add(state);
    if (state === "load") for (const listener of this.#listeners) listener.onLoaded?.();
    this.changes.tell();
  }

  /** The main frame's navigation has come to its end: to a document, or to nothing. */
  #arrive(): void {
    this.#destination = undefined;
    this.changes.tell();
  }

  #frameOf(id: string, parentId: string | undefined, url: string, session: CdpSession): Frame {
    return { id, parentId, url: url.slice(0, addressLength), session };
  }
}

type CommittedFrame = WireEvents["Page.frameNavigated"]["frame"];

/** Has a page, or a frame in a process of its own, tell of itself. What fails has gone meanwhile, which is told too. */
function prepare(session: CdpSession): Promise<unknown> {
  return Promise.allSettled([
    session.send("Page.enable"),
    session.send("Page.setLifecycleEventsEnabled", { enabled: true }),
    // Bodies are not kept: they would be the renderer's memory, and nobody asks for them.
    session.send("Network.enable", { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 }),
    session.send("Inspector.enable"),
    session.send("Page.setInterceptFileChooserDialog", { enabled: true }),
  ]);
}

/** What is answered while the renderer of a page is gone. */
export function crashedFailure(): Failure {
  const detail = "the page has crashed; the next navigate starts it anew";
  return fail("driver-error", { target_crashed: true }, { detail });
}

/** What is answered when a page closes while it is acted on. */
export function closedFailure(): Failure {
  return fail("driver-error", { target_closed: true }, { detail: "the page has closed" });
}

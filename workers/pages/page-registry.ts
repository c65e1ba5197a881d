import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { OwnTarget, TargetListener, Targets } from "../cdp/targets.ts";
import { Changes } from "./changes.ts";
import type { Progress } from "./progress.ts";
import { SessionPage } from "./session-page.ts";
import { Tab } from "./tab.ts";

/** Maximum number of pages per session, for sites that open popups without end. */
export const maxPages = 32;

/**
 * Longest wait in milliseconds for a page to open. A page opens in about 10 ms on an idle machine, but never if its
 * renderer dies.
 */
const openMs = 15_000;

export interface PageBrowser {
  /** Our session of the whole browser. */
  readonly browserSession: CdpSession;
  readonly targets: Targets;
  /** Size of new windows, which then need not be resized. */
  readonly viewport?: Viewport;
}

/** Receives changes of a session's pages. */
export interface PageListener {
  onOpened(page: SessionPage): void;
  /** Called when a page gets its first tab, or another tab because the old tab crashed or hung. */
  onTab(page: SessionPage): void;
  onClosed(page: SessionPage): void;
  /** Called if no blank page could replace the last closed page: the browser is unusable. */
  onLost(error: unknown): void;
}

/** Registry of a session's pages, including the active page. */
export class PageRegistry implements TargetListener {
  /** Notifies of changes in any page. */
  readonly changes = new Changes();
  readonly #browser: PageBrowser;
  readonly #listener: PageListener;
  readonly #pages: SessionPage[] = [];
  /** Pages in the order of activation. The last page is active. */
  readonly #recent: SessionPage[] = [];
  /** All tabs of the session, with or without a page. */
  readonly #tabs = new Map<OwnTarget, Tab>();
  /** Context in which pages are opened. Undefined: the browser's initial context. */
  readonly #ownContextId: string | undefined;
  /** Context of the registered pages. Pages of other contexts belong to the CDP clients that created the contexts. */
  #contextId: string | undefined;
  #opened = 0;
  /** Tabs that the browser announced while `#newTab` opens a tab. Undefined otherwise. */
  #announced: Tab[] | undefined;
  #opening: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #unlisten: () => void = () => undefined;

  /** Registers the pages of one browser context: by default, of the browser's initial context. */
  constructor(browser: PageBrowser, listener: PageListener, contextId?: string) {
    this.#browser = browser;
    this.#listener = listener;
    this.#ownContextId = contextId;
    this.#contextId = contextId;
  }

  /** Registers the browser's initial page, or opens a page. */
  async start(): Promise<void> {
    this.#unlisten = this.#browser.targets.listen(this);
    if (this.#pages.length === 0) this.#add(await this.#newTab());
    await this.active.tab.ready;
  }

  /** All pages, oldest first. */
  get all(): readonly SessionPage[] {
    return this.#pages;
  }

  /** The active page. Undefined if the last page has closed and no blank page has replaced it yet. */
  get shown(): SessionPage | undefined {
    return this.#recent.at(-1);
  }

  /** The default page of commands. Throws `driver-error` if the last page has just closed. */
  get active(): SessionPage {
    const page = this.shown;
    if (!page)
      throw fail("driver-error", { target_closed: true }, { detail: "the session's last page has just closed" });
    return page;
  }

  /** Returns the page that a command names, or the active page. Throws `not-found` if the id is unknown. */
  find(id: string | undefined): SessionPage {
    if (id === undefined || id === "") return this.active;
    const page = this.#pages.find((candidate) => candidate.id === id);
    if (!page) throw fail("not-found", {}, { detail: `the session has no page ${id.slice(0, 64)}` });
    return page;
  }

  openedBy(sessionPage: SessionPage): SessionPage[] {
    return this.#pages.filter(({ tab }) => tab.target.info.openerId === sessionPage.targetId);
  }

  activate(sessionPage: SessionPage): void {
    removeFrom(this.#recent, sessionPage);
    this.#recent.push(sessionPage);
    this.changes.notify();
  }

  /** Opens a blank page and makes the page active. Throws `conflict` if the session already has `maxPages` pages. */
  async open(progress: Progress): Promise<void> {
    if (this.#pages.length >= maxPages) {
      throw fail("conflict", {}, { detail: `the session has ${maxPages} pages, the maximum: close one first` });
    }
    await progress.race(this.#newTab().then((tab) => this.#adopt(tab)));
  }

  /** Closes a page. Resolves when the page is gone and, if it was the last page, a blank page has replaced it. */
  async close({ tab }: SessionPage, progress: Progress): Promise<void> {
    await progress.race(this.#closeTab(tab));
    await this.changes.until(() => (tab.isClosed && this.#pages.length > 0) || undefined, progress);
  }

  /** Moves a page to a new tab under the same id, for example if its renderer hangs. */
  async replace(sessionPage: SessionPage): Promise<void> {
    const isCrashed = sessionPage.isCrashed;
    const tab = await this.#newTab();
    // In an endless script, the renderer would delay the closing of its tab by 0.5 to 2.5 s. A crash ends it at once.
    if (!isCrashed) await sessionPage.crash();
    const old = sessionPage.replaceTab(tab);
    this.#listener.onTab(sessionPage);
    this.changes.notify();
    this.#closeTab(old).catch(() => undefined);
  }

  /** From now on, no blank page is opened when the last page closes. */
  end(): void {
    this.#isClosed = true;
  }

  /** Stops following the pages, after their context was disposed of. */
  stop(): void {
    this.end();
    this.#unlisten();
  }

  onOpened(target: OwnTarget): void {
    const { type, browserContextId } = target.info;
    if (type === "iframe") void this.#tabOf(target)?.addSession(target.session);
    if (type !== "page") return;
    this.#contextId ??= browserContextId;
    if (browserContextId !== this.#contextId) return;
    const tab = new Tab(target, this.changes);
    this.#tabs.set(target, tab);
    if (this.#announced) this.#announced.push(tab);
    else this.#adopt(tab);
  }

  onClosed(target: OwnTarget): void {
    if (target.info.type === "iframe") this.#tabOf(target)?.dropSession(target.session);
    const tab = this.#tabs.get(target);
    if (!tab) return;
    this.#tabs.delete(target);
    tab.close();
    const sessionPage = this.#pages.find((page) => page.tab === tab);
    if (sessionPage) this.#remove(sessionPage);
  }

  /** Returns the tab of a frame's page. */
  #tabOf(target: OwnTarget): Tab | undefined {
    let page = target;
    while (page.parent) page = page.parent;
    return this.#tabs.get(page);
  }

  /** Registers a tab as a page, or closes the tab if the session has too many pages. */
  #adopt(tab: Tab): void {
    if (tab.isClosed) return;
    if (this.#pages.length < maxPages) this.#add(tab);
    else this.#closeTab(tab).catch(() => undefined);
  }

  #add(tab: Tab): void {
    this.#opened += 1;
    const sessionPage = new SessionPage(`page_${this.#opened}`, tab, this.#browser.browserSession);
    this.#pages.push(sessionPage);
    this.#recent.push(sessionPage);
    this.#listener.onTab(sessionPage);
    this.#listener.onOpened(sessionPage);
    this.changes.notify();
  }

  #remove(sessionPage: SessionPage): void {
    removeFrom(this.#pages, sessionPage);
    removeFrom(this.#recent, sessionPage);
    if (this.#isClosed) return;
    this.#listener.onClosed(sessionPage);
    this.changes.notify();
    if (this.#pages.length > 0) return;
    this.#newTab().then(
      (tab) => this.#add(tab),
      (error: unknown) => {
        if (!this.#isClosed) this.#listener.onLost(error);
      },
    );
  }

  async #closeTab(tab: Tab): Promise<void> {
    await this.#browser.browserSession.send("Target.closeTarget", { targetId: tab.mainFrameId });
  }

  /** Opens a tab. Tabs are opened one at a time, to distinguish the tab from popups that open meanwhile. */
  #newTab(): Promise<Tab> {
    const opened = this.#opening.then(async () => {
      const announced: Tab[] = [];
      this.#announced = announced;
      let tab: Tab | undefined;
      try {
        tab = await raceSignal(this.#createTab(announced), AbortSignal.timeout(openMs));
        return tab;
      } finally {
        this.#announced = undefined;
        for (const other of announced) if (other !== tab) this.#adopt(other);
      }
    });
    this.#opening = opened.catch(() => undefined);
    return opened;
  }

  /** Creates a tab. The browser announces the tab before answering the command. */
  async #createTab(announced: readonly Tab[]): Promise<Tab> {
    const { viewport } = this.#browser;
    const { targetId } = await this.#browser.browserSession.send("Target.createTarget", {
      url: "about:blank",
      ...(viewport && { width: viewport.width, height: viewport.height }),
      ...(this.#ownContextId !== undefined && { browserContextId: this.#ownContextId }),
    });
    const tab = announced.find(({ mainFrameId }) => mainFrameId === targetId);
    if (!tab) throw new Error("the browser opened a page without announcing its target");
    await tab.ready;
    return tab;
  }
}

function removeFrom<Item>(list: Item[], item: Item): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

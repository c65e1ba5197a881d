import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { OwnTarget, TargetListener, Targets } from "../cdp/targets.ts";
import { Changes } from "./changes.ts";
import type { Progress } from "./progress.ts";
import { SessionPage } from "./session-page.ts";
import { Tab } from "./tab.ts";

/** How many pages a session may have: a page that opens popups without end must not take the machine. */
export const mostPages = 32;

/** How long a page may take to open: some 10 ms on a quiet machine, and for ever when its renderer dies meanwhile. */
const openMs = 15_000;

/** What has pages. */
export interface PageBrowser {
  /** Our session of the whole browser. */
  readonly browserSession: CdpSession;
  readonly targets: Targets;
}

/** What becomes known of a session's pages. */
export interface PageListener {
  onOpened(page: SessionPage): void;
  /** A page has a tab: its first, or one in place of a crashed one. */
  onTab(page: SessionPage): void;
  onClosed(page: SessionPage): void;
  /** A blank page could not be opened in place of the last one: the browser is of no use any more. */
  onLost(error: unknown): void;
}

/** The pages of a session: which there are, and which one commands act on. */
export class PageBook implements TargetListener {
  /** What happens in any of the pages. */
  readonly changes = new Changes();
  readonly #browser: PageBrowser;
  readonly #listener: PageListener;
  readonly #pages: SessionPage[] = [];
  /** Pages in the order in which they were last active: the last one is. */
  readonly #recent: SessionPage[] = [];
  /** Every tab of the session's, that of a page or not. */
  readonly #tabs = new Map<OwnTarget, Tab>();
  /** The one that the browser has come with; others are those of who has made them. */
  #contextId: string | undefined;
  #opened = 0;
  /** While we open tabs ourselves: those that the browser has announced meanwhile. */
  #announced: Tab[] | undefined;
  #opening: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(browser: PageBrowser, listener: PageListener) {
    this.#browser = browser;
    this.#listener = listener;
  }

  /** Takes the page that the browser has come with, or opens one. */
  async start(): Promise<void> {
    this.#browser.targets.listen(this);
    if (this.#pages.length === 0) this.#add(await this.#newTab());
    await this.active.tab.ready;
  }

  /** All pages, the oldest first. */
  get all(): readonly SessionPage[] {
    return this.#pages;
  }

  /** The active page; undefined while there is none, because the last one has just closed. */
  get shown(): SessionPage | undefined {
    return this.#recent.at(-1);
  }

  /** The page on which commands act that name none. */
  get active(): SessionPage {
    const page = this.shown;
    if (!page)
      throw fail("driver-error", { target_closed: true }, { detail: "the session's last page has just closed" });
    return page;
  }

  /** Finds the page that a command names, or the active one. */
  find(id: string | undefined): SessionPage {
    if (id === undefined || id === "") return this.active;
    const page = this.#pages.find((candidate) => candidate.id === id);
    if (!page) throw fail("not-found", {}, { detail: `the session has no page ${id.slice(0, 64)}` });
    return page;
  }

  /** Pages that a page has opened. */
  openedBy(sessionPage: SessionPage): SessionPage[] {
    return this.#pages.filter(({ tab }) => tab.target.info.openerId === sessionPage.targetId);
  }

  /** Makes a page the active one. */
  activate(sessionPage: SessionPage): void {
    removeFrom(this.#recent, sessionPage);
    this.#recent.push(sessionPage);
    this.changes.tell();
  }

  /** Opens a blank page, which is the active one then. Throws `conflict` when there are too many. */
  async open(progress: Progress): Promise<void> {
    if (this.#pages.length >= mostPages) {
      throw fail("conflict", {}, { detail: `the session has ${mostPages} pages, which is the most` });
    }
    await progress.race(this.#newTab().then((tab) => this.#adopt(tab)));
  }

  /** Closes a page; resolves when it is gone, with another in its place when it was the last one. */
  async close({ tab }: SessionPage, progress: Progress): Promise<void> {
    await progress.race(this.#closeTab(tab));
    await this.changes.until(() => (tab.isClosed && this.#pages.length > 0) || undefined, progress);
  }

  /** Gives a page another tab, under the same id, for one whose renderer is of no use any more. */
  async replace(sessionPage: SessionPage): Promise<void> {
    const isCrashed = sessionPage.isCrashed;
    const tab = await this.#newTab();
    // A renderer in an endless script keeps its tab for 500 ms to 2.5 s when closed, and dies at once when crashed.
    if (!isCrashed) await sessionPage.crash();
    const old = sessionPage.replaceTab(tab);
    this.#listener.onTab(sessionPage);
    this.changes.tell();
    this.#closeTab(old).catch(() => undefined);
  }

  /** Opens no page any more when the last one closes. */
  end(): void {
    this.#isClosed = true;
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

  /** The tab that a frame is part of. */
  #tabOf(target: OwnTarget): Tab | undefined {
    let page = target;
    while (page.parent) page = page.parent;
    return this.#tabs.get(page);
  }

  /** Takes up a tab that the browser opened by itself. */
  #adopt(tab: Tab): void {
    if (tab.isClosed) return;
    if (this.#pages.length < mostPages) this.#add(tab);
    else this.#closeTab(tab).catch(() => undefined);
  }

  #add(tab: Tab): void {
    this.#opened += 1;
    const sessionPage = new SessionPage(`page_${this.#opened}`, tab, this.#browser.browserSession);
    this.#pages.push(sessionPage);
    this.#recent.push(sessionPage);
    this.#listener.onTab(sessionPage);
    this.#listener.onOpened(sessionPage);
    this.changes.tell();
  }

  #remove(sessionPage: SessionPage): void {
    removeFrom(this.#pages, sessionPage);
    removeFrom(this.#recent, sessionPage);
    if (this.#isClosed) return;
    this.#listener.onClosed(sessionPage);
    this.changes.tell();
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

  /** Opens a tab of ours, telling it from popups that come at the same time; one at a time. */
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

  /** The browser tells of a tab before it answers that it has opened it. */
  async #createTab(announced: readonly Tab[]): Promise<Tab> {
    const { targetId } = await this.#browser.browserSession.send("Target.createTarget", { url: "about:blank" });
    const tab = announced.find(({ mainFrameId }) => mainFrameId === targetId);
    if (!tab) throw new Error("the browser has opened a page and not told of it");
    await tab.ready;
    return tab;
  }
}

function removeFrom<Item>(list: Item[], item: Item): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

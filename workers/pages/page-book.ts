import type { BrowserContext, Page } from "playwright-core";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import { type PageBrowser, SessionPage } from "./session-page.ts";

/** How many pages a session may have: a page that opens popups without end must not take the machine. */
const maxPages = 32;

/** How long a tab that is of no use any more may take to close. */
const closeMs = 5_000;

/** How long a page may take to open: some 10 ms on a quiet machine, and for ever when its renderer dies meanwhile. */
const openMs = 15_000;

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
export class PageBook {
  readonly #context: BrowserContext;
  readonly #browser: PageBrowser;
  readonly #listener: PageListener;
  readonly #pages: SessionPage[] = [];
  /** Pages in the order in which they were last active: the last one is. */
  readonly #recent: SessionPage[] = [];
  #opened = 0;
  /** While we open pages ourselves: those that the browser has announced meanwhile. */
  #announced: Page[] | undefined;
  #opening: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(context: BrowserContext, browser: PageBrowser, listener: PageListener) {
    this.#context = context;
    this.#browser = browser;
    this.#listener = listener;
    context.on("page", (page) => this.#onPage(page));
  }

  /** Takes the page that the browser has come with, or opens one. */
  async start(): Promise<void> {
    const [page = await this.#newPage()] = this.#context.pages();
    this.#add(page);
    await this.active.cdp;
  }

  /** All pages, the oldest first. */
  get all(): readonly SessionPage[] {
    return this.#pages;
  }

  /** The page on which commands act that name none. */
  get active(): SessionPage {
    const page = this.#recent.at(-1);
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

  /** Gives a page another tab, under the same id, for one whose renderer is of no use any more. */
  async replace(sessionPage: SessionPage): Promise<void> {
    const isCrashed = sessionPage.isCrashed;
    const page = await this.#newPage();
    this.#follow(page, sessionPage);
    // A renderer in an endless script keeps its tab for 500 ms to 2.5 s when closed, and dies at once when crashed.
    if (!isCrashed) await sessionPage.crash();
    const old = sessionPage.replaceTab(page);
    this.#listener.onTab(sessionPage);
    void within(old.close(), closeMs, undefined);
  }

  /** Opens no page any more when the last one closes. */
  close(): void {
    this.#isClosed = true;
  }

  #onPage(page: Page): void {
    if (this.#announced) this.#announced.push(page);
    else this.#adopt(page);
  }

  /** Takes up a page that the browser opened by itself. */
  #adopt(page: Page): void {
    if (this.#pages.length >= maxPages) {
      void within(page.close(), closeMs, undefined);
      return;
    }
    if (!page.isClosed()) this.#add(page);
  }

  #add(page: Page): void {
    this.#opened += 1;
    const sessionPage = new SessionPage(`page_${this.#opened}`, page, this.#browser);
    this.#pages.push(sessionPage);
    this.#recent.push(sessionPage);
    this.#follow(page, sessionPage);
    this.#listener.onTab(sessionPage);
    this.#listener.onOpened(sessionPage);
  }

  #follow(page: Page, sessionPage: SessionPage): void {
    page.on("close", () => {
      if (sessionPage.page === page) this.#remove(sessionPage);
    });
  }

  #remove(sessionPage: SessionPage): void {
    removeFrom(this.#pages, sessionPage);
    removeFrom(this.#recent, sessionPage);
    if (this.#isClosed) return;
    this.#listener.onClosed(sessionPage);
    if (this.#pages.length > 0) return;
    this.#newPage().then(
      (page) => this.#add(page),
      (error: unknown) => {
        if (!this.#isClosed) this.#listener.onLost(error);
      },
    );
  }

  /** Opens a page of ours, telling it from popups that come at the same time; one at a time. */
  #newPage(): Promise<Page> {
    const opened = this.#opening.then(async () => {
      const announced: Page[] = [];
      this.#announced = announced;
      let page: Page | undefined;
      try {
        page = await raceSignal(this.#context.newPage(), AbortSignal.timeout(openMs));
        return page;
      } finally {
        this.#announced = undefined;
        for (const other of announced) if (other !== page) this.#adopt(other);
      }
    });
    this.#opening = opened.catch(() => undefined);
    return opened;
  }
}

function removeFrom<Item>(list: Item[], item: Item): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

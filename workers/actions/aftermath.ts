import type { PageBook } from "../pages/page-book.ts";
import type { Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { Tab } from "../pages/tab.ts";

/** How long a page may be busy with what it was sent before it is left at that: its input has been answered by then. */
const busyMs = 1_000;

/** How long a navigation that was asked for may take to begin: a form is sent by a task of its own. */
const beginMs = 500;

/** How long a tab that was asked for may take to open. */
const openMs = 1_000;

/**
 * Follows what an action sets going in its page. A navigation is waited for until it has come to a document, or to
 * nothing; a tab until it has opened. What was not begun when the action was over is not waited for.
 */
export class Aftermath {
  readonly #pages: PageBook;
  readonly #page: SessionPage;
  readonly #tab: Tab;
  readonly #before: { readonly requested: number; readonly started: number; readonly windows: number };
  readonly #opened: ReadonlySet<SessionPage>;

  constructor(pages: PageBook, page: SessionPage) {
    this.#pages = pages;
    this.#page = page;
    this.#tab = page.tab;
    const { requested, started, windows } = page.tab;
    this.#before = { requested, started, windows };
    this.#opened = new Set(pages.openedBy(page));
  }

  /** Resolves, when the action is over, with the pages that it has opened. */
  async settle(progress: Progress): Promise<readonly SessionPage[]> {
    const { changes } = this.#pages;
    const tab = this.#tab;
    await changes.before(this.#handled(), () => this.#isOver(), progress, busyMs);
    if (this.#hasAsked()) await changes.until(() => this.#hasBegun() || undefined, progress, beginMs);
    if (this.#hasBegun()) await changes.until(() => !tab.isLeaving || tab.isClosed || undefined, progress);
    const wanted = tab.windows - this.#before.windows;
    const openMost = () => (this.#newPages().length >= wanted ? true : undefined);
    if (wanted > 0) await changes.until(openMost, progress, openMs);
    return this.#newPages();
  }

  /** Resolves when the page has handled all that it was sent: what it did by then was told before its answer. */
  async #handled(): Promise<void> {
    await Promise.allSettled([...this.#tab.sessions].map((session) => session.send("Page.enable")));
  }

  /** Whether nothing more has to be known of what the page does. */
  #isOver(): boolean {
    return this.#hasAsked() || this.#hasBegun() || this.#tab.isClosed || this.#tab.isCrashed;
  }

  #hasAsked(): boolean {
    return this.#tab.requested > this.#before.requested;
  }

  #hasBegun(): boolean {
    return this.#tab.started > this.#before.started;
  }

  #newPages(): SessionPage[] {
    return this.#pages.openedBy(this.#page).filter((page) => !this.#opened.has(page));
  }
}

import type { PageBook } from "../../pages/page-book.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { Tab } from "../../pages/tab.ts";
import { callIfKnown, mainFrame } from "../elements/page-world.ts";

/** How long a page may be busy with what it was sent before it is left at that: its input has been answered by then. */
const busyMs = 1_000;

/** How long a navigation that was asked for may take to begin: a form is sent by a task of its own. */
const beginMs = 500;

/** How long a tab that was asked for may take to open. */
const openMs = 1_000;

/** What has come of an action. */
interface Outcome {
  /** Pages that it has opened. */
  readonly opened: readonly SessionPage[];
  /** The title of the document that it was done to; undefined when that is not known, or it may have gone. */
  readonly title: string | undefined;
}

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

  /**
   * Resolves, when the action is over, with what has come of it. `told` is the title that the page has told when it had
   * handled all that it was sent, where it has.
   */
  async settle(progress: Progress, told: string | undefined): Promise<Outcome> {
    const { changes } = this.#pages;
    const tab = this.#tab;
    const title = await changes.before(this.#handled(progress, told), () => this.#isOver(), progress, busyMs);
    if (this.#hasAsked()) await changes.until(() => this.#hasBegun() || undefined, progress, beginMs);
    if (this.#hasBegun()) await changes.until(() => !tab.isLeaving || tab.isClosed || undefined, progress);
    const wanted = tab.windows - this.#before.windows;
    const openMost = () => (this.#newPages().length >= wanted ? true : undefined);
    if (wanted > 0) await changes.until(openMost, progress, openMs);
    return { opened: this.#newPages(), title: this.#isOver() ? undefined : title };
  }

  /**
   * Resolves when the page has handled all that it was sent: what it did by then was told before its answer. Gives its
   * title where our script is in its document, and can be asked for it in the same turn.
   */
  async #handled(progress: Progress, told: string | undefined): Promise<string | undefined> {
    const { session, sessions } = this.#tab;
    const others = [...sessions].filter((each) => each !== session);
    const answers = others.map((each) => each.send("Page.enable").catch(() => undefined));
    const [title] = await Promise.all([told ?? this.#askTitle(progress), ...answers]);
    return title;
  }

  async #askTitle(progress: Progress): Promise<string | undefined> {
    const scene = { sessionPage: this.#page, progress };
    const title = await callIfKnown(scene, mainFrame(scene), "title").catch(() => undefined);
    if (title === undefined) await this.#tab.session.send("Page.enable").catch(() => undefined);
    return title;
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

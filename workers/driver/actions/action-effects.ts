import type { PageRegistry } from "../../pages/page-registry.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { Tab } from "../../pages/tab.ts";
import { callIfLoaded, mainFrame } from "../elements/page-world.ts";

/** Longest wait in milliseconds, after the input was acknowledged, for the page to finish handling the input. */
const busyMs = 1_000;

/** Longest wait in milliseconds for a requested navigation to begin. A form submission begins in a later task. */
const beginMs = 500;

/** Longest wait in milliseconds for requested tabs to open. */
const openMs = 1_000;

interface ActionOutcome {
  readonly opened: readonly SessionPage[];
  /**
   * Title of the document that the action ran in. Undefined if unknown, or if the document may have been replaced or
   * closed.
   */
  readonly title: string | undefined;
}

/**
 * Waits for the effects of an action: navigations until they commit or end, new tabs until they open. Effects that
 * begin after the action ended are not awaited.
 */
export class ActionEffects {
  readonly #pages: PageRegistry;
  readonly #page: SessionPage;
  readonly #tab: Tab;
  readonly #before: { readonly requested: number; readonly started: number; readonly windows: number };
  readonly #opened: ReadonlySet<SessionPage>;

  constructor(pages: PageRegistry, page: SessionPage) {
    this.#pages = pages;
    this.#page = page;
    this.#tab = page.tab;
    const { requested, started, windows } = page.tab;
    this.#before = { requested, started, windows };
    this.#opened = new Set(pages.openedBy(page));
  }

  /**
   * Resolves with the result once all awaited effects have ended or their waits have timed out. `reportedTitle` is the
   * title that the page reported after handling all its input, if any.
   */
  async settle(progress: Progress, reportedTitle: string | undefined): Promise<ActionOutcome> {
    const { changes } = this.#pages;
    const tab = this.#tab;
    const title = await changes.before(
      this.#whenHandled(progress, reportedTitle),
      () => this.#isOver(),
      progress,
      busyMs,
    );
    if (this.#hasRequested()) await changes.until(() => this.#hasBegun() || undefined, progress, beginMs);
    if (this.#hasBegun()) await changes.until(() => !tab.isLeaving || tab.isClosed || undefined, progress);
    const requestedWindows = tab.windows - this.#before.windows;
    const hasOpenedAll = () => (this.#newPages().length >= requestedWindows ? true : undefined);
    if (requestedWindows > 0) await changes.until(hasOpenedAll, progress, openMs);
    return { opened: this.#newPages(), title: this.#isOver() ? undefined : title };
  }

  /**
   * Resolves when the page has handled all its input, with the title if our script is loaded in the document. The
   * responses to the commands arrive after the events of all earlier effects.
   */
  async #whenHandled(progress: Progress, reportedTitle: string | undefined): Promise<string | undefined> {
    const { session, sessions } = this.#tab;
    const others = [...sessions].filter((each) => each !== session);
    const answers = others.map((each) => each.send("Page.enable").catch(() => undefined));
    const [title] = await Promise.all([reportedTitle ?? this.#readTitle(progress), ...answers]);
    return title;
  }

  async #readTitle(progress: Progress): Promise<string | undefined> {
    const scene = { sessionPage: this.#page, progress };
    const title = await callIfLoaded(scene, mainFrame(scene), "title").catch(() => undefined);
    if (title === undefined) await this.#tab.session.send("Page.enable").catch(() => undefined);
    return title;
  }

  /**
   * Whether responses of the page are no longer needed: a navigation was requested or started, or the page closed or
   * crashed.
   */
  #isOver(): boolean {
    return this.#hasRequested() || this.#hasBegun() || this.#tab.isClosed || this.#tab.isCrashed;
  }

  #hasRequested(): boolean {
    return this.#tab.requested > this.#before.requested;
  }

  #hasBegun(): boolean {
    return this.#tab.started > this.#before.started;
  }

  #newPages(): SessionPage[] {
    return this.#pages.openedBy(this.#page).filter((page) => !this.#opened.has(page));
  }
}

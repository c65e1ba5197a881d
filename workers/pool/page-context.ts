import { raceSignal, within } from "../../src/platform/deadline.ts";
import { ChallengeWatch } from "../bot-checks/challenge-watch.ts";
import { type PageBrowser, PageRegistry } from "../pages/page-registry.ts";
import type { SessionPage } from "../pages/session-page.ts";

/** Maximum milliseconds for the browser to dispose of a context, which takes some milliseconds even if a page hangs. */
const disposeMs = 2_000;

/** A browser context with its pages, for one fetch. */
export class PageContext {
  readonly pages: PageRegistry;
  readonly challengeWatch = new ChallengeWatch();
  readonly #browser: PageBrowser;
  readonly #id: string;

  private constructor(browser: PageBrowser, id: string, onTab: (page: SessionPage) => void) {
    this.#browser = browser;
    this.#id = id;
    const watchTab = (page: SessionPage): void => {
      this.challengeWatch.watchTab(page.tab);
      onTab(page);
    };
    const ignore = (): void => undefined;
    this.pages = new PageRegistry(browser, { onOpened: ignore, onTab: watchTab, onClosed: ignore, onLost: ignore }, id);
  }

  /** Creates a context that refuses downloads, and opens its first page. Calls `onTab` for each new tab of a page. */
  static async open(
    browser: PageBrowser,
    onTab: (page: SessionPage) => void,
    signal: AbortSignal,
  ): Promise<PageContext> {
    const { browserSession } = browser;
    const created = await browserSession.send("Target.createBrowserContext");
    const context = new PageContext(browser, created.browserContextId, onTab);
    try {
      const refusal = { behavior: "deny", browserContextId: context.#id, eventsEnabled: true } as const;
      const prepared = Promise.all([
        browserSession.send("Browser.setDownloadBehavior", refusal),
        context.pages.start(),
      ]);
      await raceSignal(prepared, signal);
      return context;
    } catch (error) {
      await context.dispose();
      throw error;
    }
  }

  /** Closes the context with all its pages. Resolves to whether the browser confirmed the disposal in time. */
  async dispose(): Promise<boolean> {
    this.pages.end();
    this.challengeWatch.close();
    const disposed = this.#browser.browserSession.send("Target.disposeBrowserContext", { browserContextId: this.#id });
    const isGone = await within(
      disposed.then(() => true),
      disposeMs,
      false,
    );
    this.pages.stop();
    return isGone;
  }
}

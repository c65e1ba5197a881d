import type { ActivatePage, ClosePage } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../../src/platform/deadline.ts";
import { fail } from "../../../src/platform/errors.ts";
import type { PageRegistry } from "../../pages/page-registry.ts";
import type { Progress } from "../../pages/progress.ts";
import { sendWithRetry } from "../../pages/send-with-retry.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import { browserFailure } from "./browser-failure.ts";
import { waitForLoadState } from "./navigate.ts";

/** Longest wait in milliseconds for `Page.bringToFront`. The page counts as active even without a response. */
const frontMs = 500;

export interface ControlScene {
  readonly pages: PageRegistry;
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
}

/**
 * Moves to the history entry `steps` away from the current entry. Resolves when the document of the new entry has
 * loaded. Throws `conflict` if the page has no such entry.
 */
export async function traverseHistory({ sessionPage, progress }: ControlScene, steps: -1 | 1): Promise<void> {
  const { cdp } = sessionPage;
  const { entries, currentIndex } = await sendToPage(progress, () => cdp.send("Page.getNavigationHistory"));
  const entry = entries[currentIndex + steps];
  if (!entry) {
    const detail = steps < 0 ? "the page has no earlier history entry" : "the page has no later history entry";
    throw fail("conflict", {}, { detail });
  }
  await startNavigation(sessionPage, progress, () => cdp.send("Page.navigateToHistoryEntry", { entryId: entry.id }));
  await waitForLoadState(sessionPage, "load", progress);
}

/** Reloads the page. Resolves when the page has loaded. */
export async function reload({ sessionPage, progress }: ControlScene): Promise<void> {
  await startNavigation(sessionPage, progress, () => sessionPage.cdp.send("Page.reload"));
  await waitForLoadState(sessionPage, "load", progress);
}

/** Makes a page the active page. Commands without a page id act on the active page. */
export async function activatePage({ pages }: ControlScene, { pageId }: ActivatePage): Promise<void> {
  const page = pages.find(pageId);
  pages.activate(page);
  await within(page.cdp.send("Page.bringToFront"), frontMs, undefined);
}

/** Opens a blank page and makes it active. */
export async function openPage({ pages, progress }: ControlScene): Promise<void> {
  await pages.open(progress);
}

/**
 * Closes a page. If the page was active, the previously active page becomes active. A blank page replaces the last
 * page.
 */
export async function closePage({ pages, progress }: ControlScene, { pageId }: ClosePage): Promise<void> {
  await pages.close(pages.find(pageId), progress);
}

/** Longest wait in milliseconds for a navigation to begin. */
const beginMs = 500;

/**
 * Requests a navigation. Resolves when the navigation has started, when the address has changed without a navigation,
 * or after `beginMs`.
 */
async function startNavigation({ tab }: SessionPage, progress: Progress, send: () => Promise<unknown>): Promise<void> {
  const { started, url } = tab;
  await sendToPage(progress, send);
  await tab.changes.until(() => tab.started > started || tab.url !== url || undefined, progress, beginMs);
}

function sendToPage<Answer>(progress: Progress, send: () => Promise<Answer>): Promise<Answer> {
  return sendWithRetry(progress, send).catch((thrown) => Promise.reject(browserFailure(thrown)));
}

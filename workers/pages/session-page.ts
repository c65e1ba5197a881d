import { within } from "../../src/platform/deadline.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { PageTraffic } from "./page-traffic.ts";
import { shownAddress, shownText } from "./shown-text.ts";
import type { Tab } from "./tab.ts";

/**
 * Longest wait in milliseconds for a title, or for a crash. On an idle machine the browser process returns a title in 1
 * ms.
 */
const titleMs = 500;

/** One page (tab or popup) of a session. Outlives its renderer: a crashed or hung page gets another tab. */
export class SessionPage {
  readonly id: string;
  readonly #browser: CdpSession;
  #tab: Tab;
  /** Whether a navigate command runs in the page. */
  isNavigating = false;
  /** Whether a command timed out, and the renderer has not responded since. */
  isUnresponsive = false;

  constructor(id: string, tab: Tab, browser: CdpSession) {
    this.id = id;
    this.#browser = browser;
    this.#tab = tab;
  }

  get tab(): Tab {
    return this.#tab;
  }

  get traffic(): PageTraffic {
    return this.#tab.traffic;
  }

  get isCrashed(): boolean {
    return this.#tab.isCrashed;
  }

  /** Our CDP session of the page. */
  get cdp(): CdpSession {
    return this.#tab.session;
  }

  /** Target id of the page, which is also its main frame's id. */
  get targetId(): string {
    return this.#tab.mainFrameId;
  }

  cdpOf(frameId: string): CdpSession {
    return this.#tab.sessionOf(frameId);
  }

  /** The page's address, shortened and without credentials. */
  get address(): string {
    return shownAddress(this.#tab.url);
  }

  /**
   * Returns the page's title from the browser process, which answers even if the page hangs. Empty if the page has no
   * title or the browser does not answer in time.
   */
  async title(): Promise<string> {
    const request = this.#browser.send("Target.getTargetInfo", { targetId: this.targetId });
    const answer = await within(request, titleMs, undefined);
    const title = answer?.targetInfo.title ?? "";
    // For a document without a title, Chromium returns the address.
    return isAddress(title, this.#tab.url) ? "" : shownText(title);
  }

  /** Replaces the page's tab. Returns the old tab, which the caller must close. */
  replaceTab(tab: Tab): Tab {
    const old = this.#tab;
    this.#tab = tab;
    this.isUnresponsive = false;
    return old;
  }

  /** Crashes the renderer: the only way to stop an endless script. */
  async crash(): Promise<void> {
    // While the page is navigating, the browser forwards no commands to the renderer.
    this.cdp.send("Page.stopLoading").catch(() => undefined);
    await within(this.cdp.send("Page.crash"), titleMs, undefined);
  }
}

function isAddress(title: string, url: string): boolean {
  if (title === "" || !URL.canParse(url)) return false;
  return title === url || `${new URL(url).protocol}//${title}` === url || `${new URL(url).protocol}//${title}/` === url;
}

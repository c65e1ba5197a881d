import { within } from "../../src/platform/deadline.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { PageTraffic } from "./page-traffic.ts";
import { shownAddress, shownText } from "./shown-text.ts";
import type { Tab } from "./tab.ts";

/** How long the browser process may take to tell a page's title: 1 ms on a quiet machine, whatever the page does. */
const titleMs = 500;

/** One page (tab or popup) of a session. It outlives its renderer: a page that has crashed is given another tab. */
export class SessionPage {
  readonly id: string;
  readonly #browser: CdpSession;
  #tab: Tab;
  /** A navigate runs in it. */
  isNavigating = false;
  /** The renderer has not answered lately. */
  isSuspect = false;

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

  /** The renderer has crashed. */
  get isCrashed(): boolean {
    return this.#tab.isCrashed;
  }

  /** Our own CDP session of the page. */
  get cdp(): CdpSession {
    return this.#tab.session;
  }

  /** The page's name at the browser, which is that of its main frame too. */
  get targetId(): string {
    return this.#tab.mainFrameId;
  }

  /** Our CDP session of one of the page's frames: its own where the frame has a process of its own, else the page's. */
  cdpOf(frameId: string): CdpSession {
    return this.#tab.sessionOf(frameId);
  }

  /** The page's address as it is shown. */
  get address(): string {
    return shownAddress(this.#tab.url);
  }

  /** The page's title as the browser process knows it: a page in an endless script would not tell it. */
  async title(): Promise<string> {
    const asked = this.#browser.send("Target.getTargetInfo", { targetId: this.targetId });
    const answer = await within(asked, titleMs, undefined);
    const title = answer?.targetInfo.title ?? "";
    // Chromium gives a document without a title its address for one, the way tabs show it.
    return isAddress(title, this.#tab.url) ? "" : shownText(title);
  }

  /** Puts another tab in the place of one that is of no use any more, and gives the old one to be closed. */
  replaceTab(tab: Tab): Tab {
    const old = this.#tab;
    this.#tab = tab;
    this.isSuspect = false;
    return old;
  }

  /** Crashes the renderer: the only thing that an endless script listens to. */
  async crash(): Promise<void> {
    // The browser passes nothing on to a renderer while the page is on its way elsewhere.
    this.cdp.send("Page.stopLoading").catch(() => undefined);
    await within(this.cdp.send("Page.crash"), titleMs, undefined);
  }
}

function isAddress(title: string, url: string): boolean {
  if (title === "" || !URL.canParse(url)) return false;
  return title === url || `${new URL(url).protocol}//${title}` === url || `${new URL(url).protocol}//${title}/` === url;
}

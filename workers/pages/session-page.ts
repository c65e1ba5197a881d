import type { Page } from "playwright-core";
import { within } from "../../src/platform/deadline.ts";
import type { CdpSession } from "../wire/cdp-session.ts";
import type { Targets } from "../wire/targets.ts";
import { PageTraffic } from "./page-traffic.ts";
import { shownAddress, shownText } from "./shown-text.ts";

/** How long the browser process may take to tell a page's title: 1 ms on a quiet machine, whatever the page does. */
const titleMs = 500;

/** What a page asks of its browser. */
export interface PageBrowser {
  /** The session of the whole browser. */
  readonly browserSession: CdpSession;
  readonly targets: Targets;
}

/** One page (tab or popup) of a session. It outlives its renderer: a page that has crashed is given another tab. */
export class SessionPage {
  readonly id: string;
  readonly #browser: PageBrowser;
  #tab: Tab;
  /** A navigate runs in it. */
  isNavigating = false;
  /** The renderer has not answered lately. */
  isSuspect = false;

  constructor(id: string, page: Page, browser: PageBrowser) {
    this.id = id;
    this.#browser = browser;
    this.#tab = openTab(page, browser);
  }

  get page(): Page {
    return this.#tab.page;
  }

  get traffic(): PageTraffic {
    return this.#tab.traffic;
  }

  /** The renderer has crashed. */
  get isCrashed(): boolean {
    return this.#tab.isCrashed;
  }

  /** Our own CDP session of the page. */
  get cdp(): Promise<CdpSession> {
    return this.#tab.cdp;
  }

  /** The page's name at the browser, which is that of its main frame too. */
  get targetId(): Promise<string> {
    return this.#tab.targetId;
  }

  /** Our CDP session of one of the page's frames: its own where the frame has a process of its own, else the page's. */
  async cdpOf(frameId: string): Promise<CdpSession> {
    return this.#browser.targets.sessionOf(frameId) ?? (await this.cdp);
  }

  /** The page's address as it is shown. */
  get address(): string {
    return shownAddress(this.page.url());
  }

  /** The page's title as the browser process knows it: Playwright's own way waits for ever behind an endless script. */
  async title(): Promise<string> {
    const asked = this.#tab.targetId.then((targetId) =>
      this.#browser.browserSession.send("Target.getTargetInfo", { targetId }),
    );
    const answer = await within(asked, titleMs, undefined);
    const title = answer?.targetInfo.title ?? "";
    // Chromium gives a document without a title its address for one, the way tabs show it.
    return isAddress(title, this.page.url()) ? "" : shownText(title);
  }

  /** Puts another tab in the place of one that is of no use any more, and gives the old one to be closed. */
  replaceTab(page: Page): Page {
    const old = this.#tab.page;
    this.#tab = openTab(page, this.#browser);
    this.isSuspect = false;
    return old;
  }

  /** Crashes the renderer: the only thing that an endless script listens to. */
  async crash(): Promise<void> {
    const cdp = await this.#tab.cdp;
    await within(cdp.send("Page.crash"), titleMs, undefined);
  }
}

interface Tab {
  readonly page: Page;
  readonly traffic: PageTraffic;
  readonly cdp: Promise<CdpSession>;
  readonly targetId: Promise<string>;
  isCrashed: boolean;
}

function openTab(page: Page, { targets }: PageBrowser): Tab {
  const targetId = findTargetId(page);
  const cdp = targetId.then((id) => {
    const session = targets.sessionOf(id);
    if (!session) throw new Error("Target closed");
    return session;
  });
  // A page may be gone before it is looked at; whoever needs these awaits them.
  cdp.catch(() => undefined);
  const tab: Tab = { page, traffic: new PageTraffic(page), cdp, targetId, isCrashed: false };
  page.on("crash", () => {
    tab.isCrashed = true;
  });
  return tab;
}

/**
 * Playwright does not tell which of the browser's targets its page is: a session of the page's own does. It stays: the end
 * of any session of a page takes back what others have made it say of its platform (seen with 156).
 */
async function findTargetId(page: Page): Promise<string> {
  const session = await page.context().newCDPSession(page);
  const { targetInfo } = await session.send("Target.getTargetInfo");
  return targetInfo.targetId;
}

function isAddress(title: string, url: string): boolean {
  if (title === "" || !URL.canParse(url)) return false;
  return title === url || `${new URL(url).protocol}//${title}` === url || `${new URL(url).protocol}//${title}/` === url;
}

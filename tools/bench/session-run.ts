import type { Client } from "./client.ts";
import { firstPage, loadPage, openPage, RawBrowser, shootPage } from "./raw-browser.ts";

/** A session that has taken its screenshot and not yet ended. */
export interface DoneSession {
  end(): Promise<void>;
}

/** Starts a session, opens a page and takes a screenshot. */
export type SessionRun = () => Promise<DoneSession>;

/** Creates runs of sessions of the service. */
export function serviceSession(client: Client, url: string): SessionRun {
  return async () => {
    const session = await client.create();
    await client.post(`${session}/navigate`, { url });
    await client.post(`${session}/capture`, { kind: "screenshot" });
    return { end: () => client.destroy(session) };
  };
}

/** Creates runs of separate headless shells by raw CDP. */
export function processSession(url: string): SessionRun {
  return async () => {
    const browser = new RawBrowser();
    const page = await firstPage(browser);
    await loadPage(browser, page, url);
    await shootPage(browser, page);
    return { end: () => browser.kill() };
  };
}

/** Creates runs of browser contexts in a running shell by raw CDP. Only the browser itself isolates these. */
export function contextSession(browser: RawBrowser, url: string): SessionRun {
  return async () => {
    const { browserContextId } = await browser.send("Target.createBrowserContext");
    const page = await openPage(browser, browserContextId);
    await loadPage(browser, page, url);
    await shootPage(browser, page);
    return { end: () => browser.send("Target.disposeBrowserContext", { browserContextId }) };
  };
}

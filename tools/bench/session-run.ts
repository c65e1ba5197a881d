import type { Client } from "./client.ts";
import { firstPage, loadPage, openPage, RawBrowser, shootPage } from "./raw-browser.ts";

/** A session that has done its work, and waits for its end. */
export interface DoneSession {
  end(): Promise<void>;
}

/** Begins a session, opens a page in it and takes a picture. */
export type SessionRun = () => Promise<DoneSession>;

/** A session of the service. */
export function serviceSession(client: Client, url: string): SessionRun {
  return async () => {
    const session = await client.create();
    await client.post(`${session}/navigate`, { url });
    await client.post(`${session}/capture`, { kind: "screenshot" });
    return { end: () => client.destroy(session) };
  };
}

/** A headless shell of its own, by raw CDP. */
export function processSession(url: string): SessionRun {
  return async () => {
    const browser = new RawBrowser();
    const page = await firstPage(browser);
    await loadPage(browser, page, url);
    await shootPage(browser, page);
    return { end: () => browser.kill() };
  };
}

/** A context in a shell that runs already, by raw CDP: nothing keeps sessions apart but the browser's own bookkeeping. */
export function contextSession(browser: RawBrowser, url: string): SessionRun {
  return async () => {
    const { browserContextId } = await browser.send("Target.createBrowserContext");
    const page = await openPage(browser, browserContextId);
    await loadPage(browser, page, url);
    await shootPage(browser, page);
    return { end: () => browser.send("Target.disposeBrowserContext", { browserContextId }) };
  };
}

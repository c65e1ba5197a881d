import { type Browser, chromium } from "playwright";
import { sleep } from "../../../../src/platform/bounded-wait.ts";
import type { LoadRun } from "./run.ts";

/** Milliseconds between the commands of a client, and between its attempts to connect. */
const pause = 500;
/** A session without clients ends 30 s after its last connection broke. */
const longestAway = 25_000;

/** Connects by the name of a session, repeatedly: a gateway that ends refuses connections. */
async function connectByName({ url, key }: LoadRun, name: string): Promise<Browser> {
  const address = `${url.replace("http", "ws")}/connect?name=${name}&timeout_seconds=600`;
  const options = { headers: { authorization: `Bearer ${key}` }, timeout: 20_000 };
  const deadline = performance.now() + longestAway;
  for (;;) {
    try {
      return await chromium.connectOverCDP(address, options);
    } catch (error) {
      if (performance.now() >= deadline) throw error;
      await sleep(pause);
    }
  }
}

/**
 * Drives a session over CDP until the load ends. If its connection breaks, it connects again by the session's name, and
 * expects the page as it was.
 */
export async function driveByName(run: LoadRun, name: string, connected: () => void): Promise<void> {
  let browser = await connectByName(run, name);
  const marked = pageOf(browser);
  await marked.evaluate((title) => {
    document.title = title;
  }, name);
  connected();
  while (!run.over.aborted) {
    await sleep(pause, run.over);
    try {
      const title = await pageOf(browser).title();
      if (title !== name) throw new Error(`expected the page "${name}", got "${title}"`);
    } catch (error) {
      if (browser.isConnected()) throw error;
      run.counts.reconnects += 1;
      browser = await connectByName(run, name);
    }
  }
  // Ends the session.
  await browser.close();
}

function pageOf(browser: Browser) {
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error("expected the page of the session, got none");
  return page;
}

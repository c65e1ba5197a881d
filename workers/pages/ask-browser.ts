import { setTimeout } from "node:timers/promises";
import type { Progress } from "./progress.ts";

/** Delay before the command is sent again, in milliseconds. */
const againMs = 20;

/** Error between the browser's answer to a navigation and the commit of the document. */
const between = /Not attached to an active page/;

/**
 * Sends a command about a page. Retries while the page's document is being replaced, for example by the error page of a
 * failed navigation.
 */
export async function askBrowser<Answer>(progress: Progress, send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await progress.race(send());
    } catch (thrown) {
      if (progress.isOver || !(thrown instanceof Error && between.test(thrown.message))) throw thrown;
    }
    await progress.race(setTimeout(againMs));
  }
}

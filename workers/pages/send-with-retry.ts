import { setTimeout } from "node:timers/promises";
import type { Progress } from "./progress.ts";

/** Delay before the command is sent again, in milliseconds. */
const retryMs = 20;

/** Error of commands between the browser's response to a navigation and the commit of the document. */
const betweenDocuments = /Not attached to an active page/;

/**
 * Sends a command about a page. Retries while the page's document is being replaced, for example by the error page of a
 * failed navigation.
 */
export async function sendWithRetry<Answer>(progress: Progress, send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await progress.race(send());
    } catch (thrown) {
      if (progress.isOver || !(thrown instanceof Error && betweenDocuments.test(thrown.message))) throw thrown;
    }
    await progress.race(setTimeout(retryMs));
  }
}

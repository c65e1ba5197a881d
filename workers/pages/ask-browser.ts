import { setTimeout } from "node:timers/promises";
import type { Progress } from "./progress.ts";

/** Milliseconds until the browser is asked again. */
const againMs = 20;

/** What the browser says of a page between its answer to a navigation and the coming of the document. */
const between = /Not attached to an active page/;

/**
 * Sends the browser a command about a page; again while it refuses because the page's document is giving way to the next
 * one, which after a navigation that has failed is its own page about the failure.
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

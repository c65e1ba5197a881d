import { setTimeout as delay } from "node:timers/promises";
import type { Seen } from "../../injected/page-wait.ts";
import { plain, tidy } from "../../injected/plain-text.ts";
import { type Locator, wholeFrame } from "./locator.ts";
import { callPage, type ElementScene } from "./page-world.ts";
import { reachElement } from "./reach.ts";

/** Maximum number of occurrences of a text that are checked in one attempt, each with its masked surroundings. */
const maxOccurrences = 64;
/** Delay in milliseconds before the next check if all matches are masked. */
const againMs = 100;

export type Presence = "visible" | "hidden" | "attached" | "detached";

/**
 * Waits until an element matches, visibly (`visible`) or at all (`attached`), or until no visible element (`hidden`) or
 * no element at all (`detached`) matches. For `hidden` and `detached`, a missing frame suffices.
 */
export async function waitForElement(scene: ElementScene, locator: Locator, presence: Presence): Promise<void> {
  const { selector } = locator;
  const isAbsence = presence === "hidden" || presence === "detached";
  await reachElement(
    scene,
    locator,
    ({ inner }, timeoutMs) => callPage(scene, inner, "waitForElement", { selector, timeoutMs, presence }),
    isAbsence ? { withoutFrame: { value: true } } : {},
  );
}

/**
 * Waits until a frame shows a text. An empty `frame` is the main frame. Text that `mask` replaces counts as not shown,
 * because the result of the wait would otherwise reveal a secret.
 */
export async function waitForText(
  scene: ElementScene,
  text: string,
  frame: readonly string[],
  mask: ((text: string) => string) | undefined,
): Promise<void> {
  const wanted = plain(text);
  await reachElement(
    scene,
    wholeFrame(frame, "condition"),
    async ({ inner }, timeoutMs): Promise<Seen<unknown>> => {
      const seen = await callPage(scene, inner, "waitForText", { text, timeoutMs, max: mask ? maxOccurrences : 0 });
      if ("hindrance" in seen || !mask) return seen;
      if (seen.value.some((words) => plain(mask(tidy(words, words.length))).includes(wanted))) return seen;
      await scene.progress.race(delay(Math.min(againMs, scene.progress.remaining())));
      return { hindrance: "did not appear within the timeout" };
    },
    { subject: "the text" },
  );
}

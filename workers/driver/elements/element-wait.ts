import { setTimeout as delay } from "node:timers/promises";
import type { Seen } from "../../injected/page-wait.ts";
import { plain, tidy } from "../../injected/plain-text.ts";
import { type Locator, wholeFrame } from "./locator.ts";
import { callPage, type ElementScene } from "./page-world.ts";
import { reachElement } from "./reach.ts";

/** Maximum number of matches that are checked for secrets. */
const maxPlaces = 64;
/** Delay in milliseconds before the next check if all matches are masked. */
const againMs = 100;

export type Presence = "visible" | "hidden" | "attached" | "detached";

/**
 * Waits until a match is visible or attached, or until none is. If the element must be absent, a missing frame counts
 * as absence.
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
 * Waits until an element of a frame or page shows a text. Text that `mask` replaces counts as not shown, because a wait
 * would reveal the secret.
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
      const seen = await callPage(scene, inner, "waitForText", { text, timeoutMs, max: mask ? maxPlaces : 0 });
      if ("hindrance" in seen || !mask) return seen;
      if (seen.value.some((words) => plain(mask(tidy(words, words.length))).includes(wanted))) return seen;
      await scene.progress.race(delay(Math.min(againMs, scene.progress.remaining())));
      return { hindrance: "did not appear within the timeout" };
    },
    { subject: "the text" },
  );
}

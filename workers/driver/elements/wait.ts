import { setTimeout as delay } from "node:timers/promises";
import { tidy } from "../../injected/page-role.ts";
import { plain } from "../../injected/page-text.ts";
import type { Seen } from "../../injected/page-wait.ts";
import { type Aim, wholeFrame } from "./aim.ts";
import { callPage, type ElementScene } from "./page-world.ts";
import { reach } from "./reach.ts";

/** At how many places a text is looked at that may be a secret, and how soon it is looked for again where it was one. */
const mostPlaces = 64;
const againMs = 100;

/** What an element has to be: in the document and seen, or not. */
export type Presence = "visible" | "hidden" | "attached" | "detached";

/** Waits until the first visible match, or any, is there or is no more; without its frame it is not there. */
export async function waitForElement(scene: ElementScene, aim: Aim, presence: Presence): Promise<void> {
  const { selector } = aim;
  const isAbsence = presence === "hidden" || presence === "detached";
  await reach(
    scene,
    aim,
    ({ inner }, timeoutMs) => callPage(scene, inner, "waitForElement", { selector, timeoutMs, presence }),
    isAbsence ? { withoutFrame: { value: true } } : {},
  );
}

/**
 * Waits until some element of a frame, or of the page, shows a text; `cover` hides secrets in what is written there, and a
 * text that is hidden by it is not shown: whoever waits would learn what it is.
 */
export async function waitForText(
  scene: ElementScene,
  text: string,
  frame: readonly string[],
  cover: ((text: string) => string) | undefined,
): Promise<void> {
  const wanted = plain(text);
  await reach(
    scene,
    wholeFrame(frame, "condition"),
    async ({ inner }, timeoutMs): Promise<Seen<unknown>> => {
      const seen = await callPage(scene, inner, "waitForText", { text, timeoutMs, most: cover ? mostPlaces : 0 });
      if ("hindrance" in seen || !cover) return seen;
      if (seen.value.some((words) => plain(cover(tidy(words, words.length))).includes(wanted))) return seen;
      await scene.progress.race(delay(Math.min(againMs, scene.progress.remaining())));
      return { hindrance: "did not appear within the timeout" };
    },
    { subject: "the text" },
  );
}

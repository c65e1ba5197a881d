import { setTimeout as delay } from "node:timers/promises";
import type { Seen } from "../../injected/page-wait.ts";
import { plain, tidy } from "../../injected/plain-text.ts";
import { type Aim, wholeFrame } from "./aim.ts";
import { callPage, type ElementScene } from "./page-world.ts";
import { reachElement } from "./reach.ts";

/** Maximum places at which a possibly secret text is checked. */
const maxPlaces = 64;
/** Delay in milliseconds before the next check. */
const againMs = 100;

export type Presence = "visible" | "hidden" | "attached" | "detached";

/** Waits until the first visible match, or any match, is present or absent. A missing frame counts as absence. */
export async function waitForElement(scene: ElementScene, aim: Aim, presence: Presence): Promise<void> {
  const { selector } = aim;
  const isAbsence = presence === "hidden" || presence === "detached";
  await reachElement(
    scene,
    aim,
    ({ inner }, timeoutMs) => callPage(scene, inner, "waitForElement", { selector, timeoutMs, presence }),
    isAbsence ? { withoutFrame: { value: true } } : {},
  );
}

/**
 * Waits until an element of a frame or page shows a text. Text that `cover` masks as secret counts as not shown: a wait
 * would reveal the secret.
 */
export async function waitForText(
  scene: ElementScene,
  text: string,
  frame: readonly string[],
  cover: ((text: string) => string) | undefined,
): Promise<void> {
  const wanted = plain(text);
  await reachElement(
    scene,
    wholeFrame(frame, "condition"),
    async ({ inner }, timeoutMs): Promise<Seen<unknown>> => {
      const seen = await callPage(scene, inner, "waitForText", { text, timeoutMs, max: cover ? maxPlaces : 0 });
      if ("hindrance" in seen || !cover) return seen;
      if (seen.value.some((words) => plain(cover(tidy(words, words.length))).includes(wanted))) return seen;
      await scene.progress.race(delay(Math.min(againMs, scene.progress.remaining())));
      return { hindrance: "did not appear within the timeout" };
    },
    { subject: "the text" },
  );
}

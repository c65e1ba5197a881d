import { type Aim, wholeFrame } from "./aim.ts";
import { callPage, type ElementScene } from "./page-world.ts";
import { reach } from "./reach.ts";

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

/** Waits until some element of a frame, or of the page, shows a text. */
export async function waitForText(scene: ElementScene, text: string, frame: readonly string[]): Promise<void> {
  await reach(
    scene,
    wholeFrame(frame, "condition"),
    ({ inner }, timeoutMs) => callPage(scene, inner, "waitForText", { text, timeoutMs }),
    { subject: "the text" },
  );
}

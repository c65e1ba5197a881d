import type { Box } from "../../injected/page-aim.ts";
import { CommandProgress } from "../../pages/progress.ts";
import type { Scene } from "../actions/scene.ts";
import type { Locator } from "../elements/locator.ts";
import * as elements from "../elements/reach.ts";

/** Longest time in milliseconds to show the element of a capture and run `work`. */
const elementMs = 5_000;

/** Runs `work` while an element is in view. `box` is the element's box in the viewport. Throws after `elementMs`. */
export async function whileCaptureShown<Value>(
  { sessionPage, progress }: Scene,
  locator: Locator,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  using limited = new CommandProgress(Math.min(progress.remaining(), elementMs), [progress.signal]);
  return await elements.whileShown({ sessionPage, progress: limited }, locator, work);
}

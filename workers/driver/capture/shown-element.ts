import type { Box } from "../../injected/page-aim.ts";
import { CommandProgress } from "../../pages/progress.ts";
import type { Scene } from "../actions/scene.ts";
import type { Aim } from "../elements/aim.ts";
import * as elements from "../elements/reach.ts";

/** Longest wait for the element of a capture, as long as for the element of an action. */
const elementMs = 5_000;

/** Runs `work` while an element is in view. The element's box is relative to the viewport. */
export async function whileCaptureShown<Value>(
  { sessionPage, progress }: Scene,
  aim: Aim,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  using soon = new CommandProgress(Math.min(progress.remaining(), elementMs), [progress.signal]);
  return await elements.whileShown({ sessionPage, progress: soon }, aim, work);
}

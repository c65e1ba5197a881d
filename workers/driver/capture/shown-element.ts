import type { Box } from "../../injected/page-aim.ts";
import { CommandProgress } from "../../pages/progress.ts";
import type { Scene } from "../actions/scene.ts";
import type { Aim } from "../elements/aim.ts";
import * as elements from "../elements/reach.ts";

/** How long the element of a capture may take to appear: as long as that of an interact. */
const elementMs = 5_000;

/** Does something while an element is in view; its box is counted from the corner of the viewport. */
export async function whileShown<Value>(
  { sessionPage, progress }: Scene,
  aim: Aim,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  using soon = new CommandProgress(Math.min(progress.remaining(), elementMs), [progress.signal]);
  return await elements.whileShown({ sessionPage, progress: soon }, aim, work);
}

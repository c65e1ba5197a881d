import type { Scene } from "../actions/scene.ts";
import type { Aim } from "../elements/aim.ts";
import type { Box } from "../elements/page-aim.ts";
import { showElement as show } from "../elements/reach.ts";
import { CommandProgress } from "../pages/progress.ts";

export type { Box };

/** How long the element of a capture may take to appear: as long as that of an interact. */
const elementMs = 5_000;

/** Brings an element into view and gives its box, counted from the corner of the viewport. */
export async function showElement({ sessionPage, progress }: Scene, aim: Aim): Promise<Box> {
  using soon = new CommandProgress(Math.min(progress.remaining(), elementMs), [progress.signal]);
  return await show({ sessionPage, progress: soon }, aim);
}

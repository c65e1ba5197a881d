import { fail } from "../../src/platform/errors.ts";
import { elementFailure } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import { type Aim, locateVisible } from "../actions/selectors.ts";

/** A rectangle in CSS pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** How long the element of a capture may take to appear: as long as that of an interact. */
const elementMs = 5_000;

/** Brings an element into view and gives its box, counted from the corner of the viewport. */
export async function showElement(scene: Scene, aim: Aim): Promise<Box> {
  try {
    const element = locateVisible(scene.page, aim);
    const timeout = Math.min(scene.progress.remaining(), elementMs);
    await element.scrollIntoViewIfNeeded({ timeout });
    const box = await element.boundingBox({ timeout });
    if (!box) throw fail("driver-error", {}, { detail: "the element has left the page" });
    return box;
  } catch (thrown) {
    throw await elementFailure(thrown, scene.page, [aim]);
  }
}

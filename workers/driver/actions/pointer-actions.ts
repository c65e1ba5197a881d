import { setTimeout as delay } from "node:timers/promises";
import type { Drag, Place, Swipe } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import type { Point } from "../../input/mouse.ts";
import { inputOf } from "../../input/page-input.ts";
import type { Progress } from "../../pages/progress.ts";
import { showElement } from "../elements/reach.ts";
import { checkTime, locatorOf, type Scene } from "./scene.ts";

/**
 * Minimum number of moves from the start to the end of a drag or swipe. Pages that follow the pointer need more than
 * one move.
 */
const dragSteps = 10;

/** Milliseconds between two moves of a finger or of the mouse, about one frame. */
const frameMs = 16;

/** Default duration of a swipe in milliseconds. */
const swipeMs = 300;

/** Presses at one point, moves to another point and releases the button. */
export function drag(scene: Scene, { from, to }: Drag): Promise<void> {
  return dragMouse(scene, from, to, 0);
}

/** Moves one finger between two points. Without a touch screen, drags the mouse for the same duration. */
export async function swipe(scene: Scene, { from, to, durationMs = swipeMs }: Swipe): Promise<void> {
  if (!scene.hasTouch) return dragMouse(scene, from, to, durationMs);
  const { progress, sessionPage } = scene;
  const { touchScreen } = inputOf(sessionPage.cdp);
  const start = await findPoint(scene, from, "action.from");
  const end = await findPoint(scene, to, "action.to");
  checkTime(progress);
  try {
    await progress.race(touchScreen.start(start));
    await eachStep(start, end, durationMs, progress, (point) => touchScreen.move(point));
    await progress.race(touchScreen.end());
  } finally {
    touchScreen.cancel();
  }
}

async function dragMouse(
  scene: Scene,
  from: Place | undefined,
  to: Place | undefined,
  durationMs: number,
): Promise<void> {
  const { progress, sessionPage } = scene;
  const { mouse } = inputOf(sessionPage.cdp);
  const start = await findPoint(scene, from, "action.from");
  checkTime(progress);
  await progress.race(mouse.move(start));
  checkTime(progress);
  try {
    await progress.race(mouse.down());
    const end = await findPoint(scene, to, "action.to");
    await eachStep(start, end, durationMs, progress, (point) => mouse.move(point));
    await progress.race(mouse.up());
  } finally {
    mouse.cancel();
  }
}

async function eachStep(
  start: Point,
  end: Point,
  durationMs: number,
  progress: Progress,
  move: (point: Point) => Promise<unknown>,
): Promise<void> {
  const steps = Math.max(dragSteps, Math.round(durationMs / frameMs));
  const beganAt = performance.now();
  for (let step = 1; step <= steps; step += 1) {
    const share = step / steps;
    checkTime(progress);
    await progress.race(move({ x: start.x + (end.x - start.x) * share, y: start.y + (end.y - start.y) * share }));
    const early = beganAt + durationMs * share - performance.now();
    if (early > 1) await progress.race(delay(early));
  }
}

/**
 * Returns the requested point, or the centre of the requested element once the element is visible, stable and in view.
 */
async function findPoint(scene: Scene, place: Place | undefined, path: string): Promise<Point> {
  if (!place) throw failFields("validation-failed", { [path]: "is required" });
  const { x = 0, y = 0 } = place;
  const locator = locatorOf(scene, place, path);
  if (!locator) return { x, y };
  const box = await showElement(scene, locator);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

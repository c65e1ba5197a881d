import type { Scroll } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import type { Scrolled } from "../../injected/page-scroll.ts";
import type { ViewportPoint } from "../../injected/page-visibility.ts";
import { inputOf } from "../../input/page-input.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentReplaced,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";
import { contentFrameIdOf, reachElement, retryUntilTimeout } from "../elements/reach.ts";
import { locatorOf, type Scene } from "./scene.ts";

/**
 * Longest wait in milliseconds for a wheel event to scroll the page. A page without scrollable content never scrolls.
 */
const settleMs = 500;

/**
 * Scrolls an element, or sends a wheel event to the middle of the viewport. Resolves when the page has scrolled, or
 * `settleMs` after the wheel event.
 */
export async function scroll(scene: Scene, request: Scroll): Promise<void> {
  const { dx, dy } = request;
  const locator = locatorOf(scene, request, "action");
  if (locator) {
    await reachElement(scene, locator, ({ inner }, timeoutMs) =>
      callPage(scene, inner, "scrollElement", { selector: locator.selector, timeoutMs }, { dx, dy }),
    );
    return;
  }
  const { progress, sessionPage } = scene;
  const { mouse } = inputOf(sessionPage.cdp);
  const watched = await retryUntilTimeout(scene, async () => ({ value: await readScrolls(scene, mainFrame(scene)) }));
  const middle = watched[0].seen.at;
  await progress.race(Promise.all([mouse.move(middle), mouse.dispatchWheel(middle, { x: dx, y: dy })]));
  const timeoutMs = Math.min(settleMs, progress.remaining());
  await Promise.race(
    watched.map(({ frame, seen }) => callPage(scene, frame, "settled", { ...seen, timeoutMs }).catch(ignoreReplaced)),
  );
}

/** A frame with its scroll offsets before the wheel event. */
interface WatchedFrame {
  readonly frame: FrameSession;
  readonly seen: Scrolled;
}

/**
 * Reads the scroll offsets around a point (default: the middle of the viewport). If a frame is shown at the point,
 * reads the frame's offsets too, recursively.
 */
async function readScrolls(
  scene: Scene,
  frame: FrameSession,
  at?: ViewportPoint,
): Promise<[WatchedFrame, ...WatchedFrame[]]> {
  const seen = await callPage(scene, frame, "scrolled", at);
  if (!seen.inner) return [{ frame, seen }];
  const { objectId } = await callForObject(scene, frame, "hitAt", seen.at);
  const id = objectId && (await contentFrameIdOf(scene, frame, objectId));
  return [{ frame, seen }, ...(id ? await readScrolls(scene, childFrame(scene, id), seen.inner) : [])];
}

/** Ignores that a frame's document was replaced after the wheel event. Rethrows other errors. */
function ignoreReplaced(thrown: unknown): void {
  if (!(thrown instanceof DocumentReplaced)) throw thrown;
}

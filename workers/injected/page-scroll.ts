import { outerPoint, whenReady } from "./page-aim.ts";
import type { ViewportPoint } from "./page-visibility.ts";
import * as visibility from "./page-visibility.ts";
import { type ElementOptions, nextFrame, type Seen } from "./page-wait.ts";

/**
 * Returns the scroll offsets around a point (default: the middle of the viewport). If a frame is shown at the point,
 * also returns the point in the frame's coordinates.
 */
export function scrolled(at: ViewportPoint = { x: innerWidth / 2, y: innerHeight / 2 }): Scrolled {
  const hit = visibility.hitAt(at);
  let offsets = `${scrollX},${scrollY}`;
  for (let around = hit; around; around = visibility.shownIn(around))
    offsets += `;${around.scrollLeft},${around.scrollTop}`;
  return { at, offsets, inner: hit instanceof HTMLIFrameElement ? innerPoint(hit, at) : null };
}

/**
 * Scroll offsets of the document and of the elements around a point (`at`). If a frame is shown at the point, `inner`
 * is the point in the frame's coordinates.
 */
export interface Scrolled {
  readonly at: ViewportPoint;
  readonly offsets: string;
  readonly inner: ViewportPoint | null;
}

/** Converts a point of the outer document to the frame's coordinates. */
export function innerPoint(frame: Element, { x, y }: ViewportPoint): ViewportPoint {
  const [from, to] = [outerPoint(frame, { x: 0, y: 0 }), outerPoint(frame, { x: 1, y: 1 })];
  return { x: (x - from.x) / (to.x - from.x), y: (y - from.y) / (to.y - from.y) };
}

/** Resolves when the offsets have changed and then stayed the same for two frames, or after `timeoutMs`. */
export async function settled({ at, offsets, timeoutMs }: Scrolled & { timeoutMs: number }): Promise<void> {
  const endsAt = performance.now() + timeoutMs;
  let last = offsets;
  for (let still = 0; performance.now() < endsAt && (last === offsets || still < 2); ) {
    await nextFrame();
    const now = scrolled(at).offsets;
    still = now === last ? still + 1 : 0;
    last = now;
  }
}

export function scrollElement(options: ElementOptions, { dx, dy }: { dx: number; dy: number }): Promise<Seen<null>> {
  return whenReady(options, (element) => {
    element.scrollBy({ left: dx, top: dy, behavior: "instant" });
    return { value: null };
  });
}

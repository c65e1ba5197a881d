import type { Point } from "./page-aim.ts";

/*
 * Scroll offsets. These functions run in the page together with the modules declared below; `page-script.ts` sends
 * their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const waits: typeof import("./page-wait.ts");
declare const aiming: typeof import("./page-aim.ts");

/**
 * Returns the scroll offsets around a point (default: the middle of the viewport), and the point within the frame shown
 * there.
 */
export function scrolled(at: Point = { x: innerWidth / 2, y: innerHeight / 2 }): Scrolled {
  const hit = sight.hitAt(at);
  let offsets = `${scrollX},${scrollY}`;
  for (let around = hit; around; around = sight.shownIn(around)) offsets += `;${around.scrollLeft},${around.scrollTop}`;
  return { at, offsets, inner: hit instanceof HTMLIFrameElement ? innerPoint(hit, at) : null };
}

/** Scroll offsets around a point, and the point within the frame shown there. */
export interface Scrolled {
  readonly at: Point;
  readonly offsets: string;
  readonly inner: Point | null;
}

/** Converts a point of the outer document to the frame's own document. */
export function innerPoint(frame: Element, { x, y }: Point): Point {
  const [from, to] = [aiming.outerPoint(frame, { x: 0, y: 0 }), aiming.outerPoint(frame, { x: 1, y: 1 })];
  return { x: (x - from.x) / (to.x - from.x), y: (y - from.y) / (to.y - from.y) };
}

/** Resolves when the offsets changed and then stayed the same for two frames, or when time is up. */
export async function settled({ at, offsets, timeoutMs }: Scrolled & { timeoutMs: number }): Promise<void> {
  const endsAt = performance.now() + timeoutMs;
  let last = offsets;
  for (let still = 0; performance.now() < endsAt && (last === offsets || still < 2); ) {
    await waits.nextFrame();
    const now = scrolled(at).offsets;
    still = now === last ? still + 1 : 0;
    last = now;
  }
}

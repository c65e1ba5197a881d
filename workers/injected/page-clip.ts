import { middleOf } from "./page-aim.ts";
import { acceptsHit } from "./page-guard.ts";
import { tagOf } from "./page-role.ts";
import * as visibility from "./page-visibility.ts";

/** A rectangle by its edges, in CSS pixels of the viewport. */
export interface Clip {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/**
 * Whether an element outside of the viewport would receive input after scrolling. Judged by size and style, because
 * elements that would cover the element are unknown before scrolling.
 */
export function isDrawn(element: Element): boolean {
  const { width, height } = visibility.boxOf(element);
  const { pointerEvents, opacity } = getComputedStyle(element);
  const isInert = visibility.closest(element, "[inert]") !== undefined;
  return width >= 4 && height >= 4 && pointerEvents !== "none" && opacity !== "0" && !isInert;
}

/**
 * Whether a hit test at the element's middle, or at four points nearer to its corners, returns the element. If
 * `isItself` is false, a hit that `acceptsHit` accepts also suffices.
 */
export function isHit(element: Element, isItself: boolean): boolean {
  const middle = hitInMiddle(element);
  if (middle === "hidden") return false;
  const isMeant = (hit: Element | undefined): boolean =>
    hit !== undefined && (isItself ? hit === element : acceptsHit(element, hit));
  if (isMeant(middle)) return true;
  const { left, top, width, height } = visibility.boxOf(element);
  return [0.2, 0.8].some((across) =>
    [0.2, 0.8].some((down) => isMeant(visibility.hitAt({ x: left + width * across, y: top + height * down }))),
  );
}

/**
 * Returns the topmost element at the middle of an element. Returns `hidden` if the given element is invisible or out of
 * view.
 */
const hitInMiddle = visibility.memoize((element): Element | "hidden" | undefined => {
  const middle = middleOf(element);
  return middle && visibility.isVisible(element) ? visibility.hitAt(middle) : "hidden";
});

export function viewportClip(): Clip {
  return { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
}

const { POSITIVE_INFINITY: far } = Number;
export const everywhere: Clip = { left: -far, top: -far, right: far, bottom: far };

export function isRoot(element: Element): boolean {
  return element === document.documentElement || tagOf(element) === "body";
}

export function meets(box: Clip, clip: Clip): boolean {
  return box.left < clip.right && box.right > clip.left && box.top < clip.bottom && box.bottom > clip.top;
}

export function contains(clip: Clip, box: Clip): boolean {
  return box.left >= clip.left && box.right <= clip.right && box.top >= clip.top && box.bottom <= clip.bottom;
}

export function overlap(box: Clip, clip: Clip): Clip {
  return {
    left: Math.max(box.left, clip.left),
    top: Math.max(box.top, clip.top),
    right: Math.min(box.right, clip.right),
    bottom: Math.min(box.bottom, clip.bottom),
  };
}

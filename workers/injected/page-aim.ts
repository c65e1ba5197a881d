import { acceptsHit, type GuardOptions, guard } from "./page-guard.ts";
import { allNamed, firstNamed, staleness } from "./page-refs.ts";
import type { ViewportPoint } from "./page-visibility.ts";
import * as visibility from "./page-visibility.ts";
import { type ElementOptions, type Seen, until } from "./page-wait.ts";

/** A rectangle of the viewport, in CSS pixels. */
export interface Box extends ViewportPoint {
  readonly width: number;
  readonly height: number;
}

/** State kept between the attempts to aim at an element. */
interface AimState {
  isDoubtful: boolean;
  element?: Element;
  box?: DOMRect;
  /** `currentTime` of the document's timeline at the last attempt. */
  shownAt?: unknown;
  scrolls: number;
  scrollsAgainAt: number;
}

interface Offset {
  readonly element: Element;
  readonly left: number;
  readonly top: number;
}

/** The frame that `findFrame` found last. */
let lastFrame: Element | undefined;
let savedOffsets: readonly Offset[] | undefined;

/** Returns the element if it is visible, and enabled if requested. Otherwise returns the hindrance. */
function findReady({ selector, isEnabled }: ElementOptions): Seen<Element> {
  const stale = staleness(selector);
  if (stale !== undefined) return { hindrance: stale, isFinal: true };
  const element = firstNamed(selector);
  if (!element) return { hindrance: "" };
  if (!visibility.isVisible(element)) return { hindrance: "is not visible" };
  if (isEnabled && visibility.isDisabled(element)) return { hindrance: "is disabled" };
  return { value: element };
}

/** Waits until an element can receive input, installs a guard for the element, and returns the point for the input. */
export function aim(options: ElementOptions & GuardOptions): Promise<Seen<ViewportPoint>> {
  const state = newAimState(options.isDoubtful);
  return until(options.timeoutMs, () => {
    const found = findReady(options);
    if ("hindrance" in found) return found;
    const seen = pointAt(found.value, () => middleOf(found.value), state);
    if ("value" in seen) guard({ expected: found.value, point: seen.value }, options);
    return seen;
  });
}

/**
 * Converts a point of the last found frame to this document and installs a guard for the frame. Returns null if the
 * point is outside of the viewport.
 */
export function aimThrough(
  options: GuardOptions & { point: ViewportPoint; timeoutMs: number },
): Promise<Seen<ViewportPoint | null>> {
  const { point, timeoutMs, isDoubtful } = options;
  const state = { ...newAimState(isDoubtful), scrolls: Number.POSITIVE_INFINITY };
  return until<ViewportPoint | null>(timeoutMs, () => {
    const frame = lastFrame;
    if (!frame?.isConnected) return { hindrance: "" };
    if (!visibility.hitAt(outerPoint(frame, point))) return { value: null };
    const seen = pointAt(frame, () => outerPoint(frame, point), state);
    if ("value" in seen) guard(undefined, options);
    return seen;
  });
}

/** Waits until an element is stable, scrolls the element into view if necessary, and returns its box. */
export function show(options: ElementOptions & { savesOffsets?: boolean }): Promise<Seen<Box>> {
  const state = newAimState(false);
  return until(options.timeoutMs, () => {
    const found = findReady(options);
    if ("hindrance" in found) return found;
    if (options.savesOffsets) saveOffsets(found.value);
    const edge = isLarge(found.value) ? "start" : "needed";
    const isMoving = mayMove(found.value, state) || (state.scrolls === 0 && bringIntoView(found.value, state, edge));
    if (isMoving) return { hindrance: "keeps moving", isUnsettled: true };
    const { x, y, width, height } = visibility.boxOf(found.value);
    return { value: { x, y, width, height } };
  });
}

/**
 * Saves the scroll offsets of an element and its ancestors until `restoreOffsets`. By default, the element is the last
 * found frame. Does nothing if offsets are already saved.
 */
export function saveOffsets(element: Element | undefined = lastFrame): void {
  if (savedOffsets) return;
  const kept: Offset[] = [];
  for (let at = element; at; at = visibility.shownIn(at)) {
    const left = visibility.read(Element.prototype, "scrollLeft", at);
    const top = visibility.read(Element.prototype, "scrollTop", at);
    kept.push({ element: at, left, top });
  }
  savedOffsets = kept;
}

/** Restores the saved scroll offsets. */
export function restoreOffsets(): void {
  for (const { element, left, top } of savedOffsets ?? []) {
    Reflect.apply(Element.prototype.scrollTo, element, [{ left, top, behavior: "instant" }]);
  }
  savedOffsets = undefined;
}

/**
 * Converts a box of the last found frame to the document that contains the frame. Returns null if no frame was found.
 */
export function outerBox({ x, y, width, height }: Box): Box | null {
  const frame = lastFrame;
  if (!frame) return null;
  const corner = outerPoint(frame, { x, y });
  const opposite = outerPoint(frame, { x: x + width, y: y + height });
  return { ...corner, width: opposite.x - corner.x, height: opposite.y - corner.y };
}

/** Scrolls an element to the middle of all its scroll containers, including containers in outer documents. */
export function reveal({ selector }: Pick<ElementOptions, "selector">): void {
  const element = firstNamed(selector);
  if (element) scrollIntoView(element, "center");
}

function newAimState(isDoubtful: boolean): AimState {
  return { isDoubtful, scrolls: 0, scrollsAgainAt: 0 };
}

/**
 * Returns the point for input to an element if the element is stable, in view and uncovered. Otherwise returns the
 * hindrance, and may scroll to the element for the next attempt.
 */
function pointAt(element: Element, findPoint: () => ViewportPoint | undefined, state: AimState): Seen<ViewportPoint> {
  if (mayMove(element, state)) return { hindrance: "keeps moving", isUnsettled: true };
  const point = findPoint();
  const hit = point && visibility.hitAt(point);
  if (point && hit && acceptsHit(element, hit)) return { value: point };
  if (bringIntoView(element, state)) return { hindrance: "is outside of the viewport", isUnsettled: true };
  return { hindrance: hit ? `is covered by ${visibility.startTagOf(hit)}` : "is outside of the viewport" };
}

/**
 * Whether an element may still be moving. The box of an element that is animated, or has moved before, must be the same
 * in two attempts.
 */
function mayMove(element: Element, state: AimState): boolean {
  const last = state.element === element ? state.box : undefined;
  const shownBefore = state.shownAt;
  state.element = element;
  state.box = visibility.boxOf(element);
  state.shownAt = visibility.read(Document.prototype, "timeline", document).currentTime;
  const animations = [...animationsOf(element)];
  // A pending animation still shows its initial position.
  if (animations.some(({ pending }) => pending)) return true;
  // If the timeline has not advanced since the last attempt, the two boxes are of the same frame.
  if (animations.length > 0 && state.shownAt === shownBefore) return true;
  return (state.isDoubtful || animations.length > 0) && !(last && visibility.isSameBox(last, state.box));
}

/**
 * Scrolls to an element. If the element is still covered, later attempts align other edges. Returns whether the element
 * moved.
 */
function bringIntoView(element: Element, state: AimState, first: "needed" | "start" = "needed"): boolean {
  const now = performance.now();
  const block = ([first, "end", "center", "start"] as const)[state.scrolls];
  if (!block || now < state.scrollsAgainAt) return false;
  const before = visibility.boxOf(element);
  scrollIntoView(element, block);
  state.scrolls += 1;
  state.scrollsAgainAt = now + 100;
  const hasMoved = !visibility.isSameBox(before, visibility.boxOf(element));
  // A page's reaction to scrolling is visible in the next frame.
  state.isDoubtful ||= hasMoved;
  return hasMoved;
}

/** Whether an element is wider or taller than the viewport. */
function isLarge(element: Element): boolean {
  const { width, height } = visibility.boxOf(element);
  return width > innerWidth || height > innerHeight;
}

function scrollIntoView(element: Element, block: "needed" | "end" | "center" | "start"): void {
  if (block !== "needed") {
    Element.prototype.scrollIntoView.call(element, { block, inline: block, behavior: "instant" });
    return;
  }
  // Cast: this function exists only in Chromium. It centres the element, unless the element is in view.
  const { scrollIntoViewIfNeeded } = Element.prototype as unknown as { scrollIntoViewIfNeeded: () => void };
  scrollIntoViewIfNeeded.call(element);
}

/** Returns the running animations and transitions of an element and its ancestors. */
function* animationsOf(element: Element): Generator<Animation> {
  for (let at: Element | undefined = element; at; at = visibility.shownIn(at)) {
    for (const animation of Element.prototype.getAnimations.call(at)) {
      if (animation.playState === "running") yield animation;
    }
  }
}

/** Returns the middle of the visible part of an element's first box that is in view. */
export function middleOf(element: Element): ViewportPoint | undefined {
  const { offsetLeft = 0, offsetTop = 0, width = innerWidth, height = innerHeight } = visualViewport ?? {};
  for (const box of visibility.boxesOf(element)) {
    const left = Math.max(box.left, offsetLeft);
    const right = Math.min(box.right, offsetLeft + width);
    const top = Math.max(box.top, offsetTop);
    const bottom = Math.min(box.bottom, offsetTop + height);
    if (left < right && top < bottom) return { x: (left + right) / 2, y: (top + bottom) / 2 };
  }
  return undefined;
}

/** Converts a point of a frame's document to the document that contains the frame. */
export function outerPoint(frame: Element, { x, y }: ViewportPoint): ViewportPoint {
  const box = visibility.boxOf(frame);
  const { paddingLeft, paddingTop } = getComputedStyle(frame);
  const { offsetWidth = 0, offsetHeight = 0 } = frame instanceof HTMLElement ? frame : {};
  const scale = {
    x: offsetWidth > 0 ? box.width / offsetWidth : 1,
    y: offsetHeight > 0 ? box.height / offsetHeight : 1,
  };
  return {
    x: box.x + (frame.clientLeft + Number.parseFloat(paddingLeft) + x) * scale.x,
    y: box.y + (frame.clientTop + Number.parseFloat(paddingTop) + y) * scale.y,
  };
}

/** Calls `act` on an element once it is visible, and enabled if requested, until `act` returns a value. */
export function whenReady<Value>(
  options: ElementOptions,
  act: (element: Element) => Seen<Value>,
): Promise<Seen<Value>> {
  return until(options.timeoutMs, () => {
    const found = findReady(options);
    return "value" in found ? act(found.value) : found;
  });
}

/**
 * Returns the first file input, visible or not, that matches, or has a label that matches or contains a match. Returns
 * false if there is no such input, and a hindrance if nothing matches.
 */
export async function findFileInput({ selector, timeoutMs }: ElementOptions): Promise<Element | false | string> {
  const seen = await until<Element | false>(timeoutMs, () => {
    const stale = staleness(selector);
    if (stale !== undefined) return { hindrance: stale, isFinal: true };
    const matches = [...allNamed(selector)].map((match) => visibility.labelled(match) ?? match);
    const isFileInput = (match: Element) => match instanceof HTMLInputElement && match.type === "file";
    return matches.length > 0 ? { value: matches.find(isFileInput) ?? false } : { hindrance: "" };
  });
  return "value" in seen ? seen.value : seen.hindrance;
}

/** Returns the visible element of a frame selector, or a hindrance. */
export async function findFrame(options: ElementOptions): Promise<Element | string> {
  const seen = await until(options.timeoutMs, () => findReady(options));
  lastFrame = "value" in seen ? seen.value : undefined;
  return "value" in seen ? seen.value : seen.hindrance;
}

/** Returns the index of the first invalid selector, or -1. */
export function firstInvalid(selectors: readonly string[]): number {
  const nothing = new DocumentFragment();
  return selectors.findIndex((selector) => {
    try {
      nothing.querySelector(selector);
      return false;
    } catch {
      return true;
    }
  });
}

export function viewportSize(): { width: number; height: number } {
  return { width: innerWidth, height: innerHeight };
}

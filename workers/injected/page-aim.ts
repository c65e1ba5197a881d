import type { Target } from "./page-guard.ts";
import type { Seen, Wish } from "./page-wait.ts";

/*
 * How an element is aimed at. These functions run in the page, beside those of the files declared here: `page-script.ts`
 * sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const waits: typeof import("./page-wait.ts");
declare const guards: typeof import("./page-guard.ts");
declare const refs: typeof import("./page-refs.ts");
declare const state: { frame: Element | undefined; kept: readonly Offset[] | undefined };

/** A point of the viewport, in CSS pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A rectangle of the viewport, in CSS pixels. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

/** Does something to an element, or says what is in the way. */
export type Act<Args, Value> = (element: Element, args: Args) => Seen<Value>;

/** What is known of an element from one look to the next. */
interface Look {
  isDoubtful: boolean;
  element?: Element;
  box?: DOMRect;
  /** The time of animations at that look. */
  shownAt?: unknown;
  scrolls: number;
  scrollsAgainAt: number;
}

/** How far an element was scrolled. */
interface Offset {
  readonly element: Element;
  readonly left: number;
  readonly top: number;
}

/** The element, once it can be seen. */
export function findReady({ selector, isEnabled }: Wish): Seen<Element> {
  const stale = typeof selector === "string" ? undefined : refs.staleness(selector);
  if (stale !== undefined) return { hindrance: stale, isFinal: true };
  const element = sight.findFirst(selector);
  if (!element) return { hindrance: "" };
  if (!sight.isVisible(element)) return { hindrance: "is not visible" };
  if (isEnabled && sight.isDisabled(element)) return { hindrance: "is disabled" };
  return { value: element };
}

/** Waits until an element can be hit, puts a guard before it, and gives the point at which to hit it. */
export function aim(wish: Wish & Target): Promise<Seen<Point>> {
  const look = newLook(wish.isDoubtful);
  return waits.until(wish.timeoutMs, () => {
    const found = findReady(wish);
    if ("hindrance" in found) return found;
    const seen = pointAt(found.value, () => middleOf(found.value), look);
    if ("value" in seen) guards.guard({ expected: found.value, point: seen.value }, wish);
    return seen;
  });
}

/**
 * Gives the point of this document at which a point of the frame that was found last is hit, and guards all else from it;
 * null where that is outside of the viewport.
 */
export function aimThrough(wish: Target & { point: Point; timeoutMs: number }): Promise<Seen<Point | null>> {
  const { point, timeoutMs, isDoubtful } = wish;
  const look = { ...newLook(isDoubtful), scrolls: Number.POSITIVE_INFINITY };
  return waits.until<Point | null>(timeoutMs, () => {
    const { frame } = state;
    if (!frame?.isConnected) return { hindrance: "" };
    if (!sight.hitAt(outerPoint(frame, point))) return { value: null };
    const seen = pointAt(frame, () => outerPoint(frame, point), look);
    if ("value" in seen) guards.guard(undefined, wish);
    return seen;
  });
}

/** Waits until an element stands still in view, and gives its box. */
export function show(wish: Wish & { keepsOffsets?: boolean }): Promise<Seen<Box>> {
  const look = newLook(false);
  return waits.until(wish.timeoutMs, () => {
    const found = findReady(wish);
    if ("hindrance" in found) return found;
    if (wish.keepsOffsets) keepOffsets(found.value);
    const edge = isLarge(found.value) ? "start" : "needed";
    const isMoving = mayMove(found.value, look) || (look.scrolls === 0 && bringIntoView(found.value, look, edge));
    if (isMoving) return { hindrance: "keeps moving", isUnsettled: true };
    const { x, y, width, height } = sight.boxOf(found.value);
    return { value: { x, y, width, height } };
  });
}

/** Keeps how far everything is scrolled that an element is in, or the frame that was found last, until it is put back. */
export function keepOffsets(element: Element | undefined = state.frame): void {
  if (state.kept) return;
  const kept: Offset[] = [];
  for (let at = element; at; at = sight.shownIn(at)) {
    const left = sight.read(Element.prototype, "scrollLeft", at);
    const top = sight.read(Element.prototype, "scrollTop", at);
    kept.push({ element: at, left, top });
  }
  state.kept = kept;
}

/** Scrolls everything back to where it was kept. */
export function putBack(): void {
  for (const { element, left, top } of state.kept ?? []) {
    Reflect.apply(Element.prototype.scrollTo, element, [{ left, top, behavior: "instant" }]);
  }
  state.kept = undefined;
}

/** The same box in the document that holds the frame which was found last. */
export function outerBox({ x, y, width, height }: Box): Box | null {
  const { frame } = state;
  if (!frame) return null;
  const corner = outerPoint(frame, { x, y });
  const opposite = outerPoint(frame, { x: x + width, y: y + height });
  return { ...corner, width: opposite.x - corner.x, height: opposite.y - corner.y };
}

/** Brings what was found last into the middle of all that it is in, frames included. */
export function reveal({ selector }: Pick<Wish, "selector">): void {
  const element = sight.findFirst(selector);
  if (element) scrollIntoView(element, "center");
}

export function newLook(isDoubtful: boolean): Look {
  return { isDoubtful, scrolls: 0, scrollsAgainAt: 0 };
}

/** Where an element is hit, once it stands still, is in view and uncovered. */
export function pointAt(element: Element, place: () => Point | undefined, look: Look): Seen<Point> {
  if (mayMove(element, look)) return { hindrance: "keeps moving", isUnsettled: true };
  const point = place();
  const hit = point && sight.hitAt(point);
  if (point && hit && guards.takes(element, hit)) return { value: point };
  if (bringIntoView(element, look)) return { hindrance: "is outside of the viewport", isUnsettled: true };
  return { hindrance: hit ? `is covered by ${sight.nameOf(hit)}` : "is outside of the viewport" };
}

/** Whether an element may be elsewhere in the next frame: it is animated, or was scrolled, and has moved since the last look. */
export function mayMove(element: Element, look: Look): boolean {
  const last = look.element === element ? look.box : undefined;
  const shownBefore = look.shownAt;
  look.element = element;
  look.box = sight.boxOf(element);
  look.shownAt = sight.read(Document.prototype, "timeline", document).currentTime;
  const animations = [...animationsOf(element)];
  // One that the browser has yet to begin stands where it will begin.
  if (animations.some(({ pending }) => pending)) return true;
  // Of a hundred looks between two frames one is given the time of the next frame already: two of one time show no movement.
  if (animations.length > 0 && look.shownAt === shownBefore) return true;
  return (look.isDoubtful || animations.length > 0) && !(last && sight.isSameBox(last, look.box));
}

/** Scrolls to an element, and where it is covered there, now and then to another edge; says whether it has moved by it. */
export function bringIntoView(element: Element, look: Look, first: "needed" | "start" = "needed"): boolean {
  const now = performance.now();
  const block = ([first, "end", "center", "start"] as const)[look.scrolls];
  if (!block || now < look.scrollsAgainAt) return false;
  const before = sight.boxOf(element);
  scrollIntoView(element, block);
  look.scrolls += 1;
  look.scrollsAgainAt = now + 100;
  const hasMoved = !sight.isSameBox(before, sight.boxOf(element));
  // What a page does when it is scrolled shows in the next frame.
  look.isDoubtful ||= hasMoved;
  return hasMoved;
}

/** Whether an element is too large for the viewport. */
export function isLarge(element: Element): boolean {
  const { width, height } = sight.boxOf(element);
  return width > innerWidth || height > innerHeight;
}

export function scrollIntoView(element: Element, block: "needed" | "end" | "center" | "start"): void {
  if (block !== "needed") {
    Element.prototype.scrollIntoView.call(element, { block, inline: block, behavior: "instant" });
    return;
  }
  // Chromium's own: it does nothing to what is in view, and centres what is not.
  const { scrollIntoViewIfNeeded } = Element.prototype as unknown as { scrollIntoViewIfNeeded: () => void };
  scrollIntoViewIfNeeded.call(element);
}

/** The animations and transitions that run on an element, and on what it is in. */
export function* animationsOf(element: Element): Generator<Animation> {
  for (let at: Element | undefined = element; at; at = sight.shownIn(at)) {
    for (const animation of Element.prototype.getAnimations.call(at)) {
      if (animation.playState === "running") yield animation;
    }
  }
}

/** The middle of the first box of an element that is in view. */
export function middleOf(element: Element): Point | undefined {
  const { offsetLeft = 0, offsetTop = 0, width = innerWidth, height = innerHeight } = visualViewport ?? {};
  for (const box of sight.boxesOf(element)) {
    const left = Math.max(box.left, offsetLeft);
    const right = Math.min(box.right, offsetLeft + width);
    const top = Math.max(box.top, offsetTop);
    const bottom = Math.min(box.bottom, offsetTop + height);
    if (left < right && top < bottom) return { x: (left + right) / 2, y: (top + bottom) / 2 };
  }
  return undefined;
}

/** A point of the document that holds a frame, for one of the frame's own document. */
export function outerPoint(frame: Element, { x, y }: Point): Point {
  const box = sight.boxOf(frame);
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

/** Does something to an element once it can be seen; what it is not ready for, `act` says itself. */
export function use<Args, Value>(wish: Wish, act: Act<Args, Value>, args: Args): Promise<Seen<Value>> {
  return waits.until(wish.timeoutMs, () => {
    const found = findReady(wish);
    return "value" in found ? act(found.value, args) : found;
  });
}

/** Runs a function that knows nothing but what it is given. */
export function run<Args extends unknown[], Value>(work: (...args: Args) => Value, ...args: Args): Value {
  return work(...args);
}

/** The first that `choose` gives for a match, seen or not; false when it gives none for any, and what is in the way. */
export async function pick(
  { selector, timeoutMs }: Wish,
  choose: (match: Element) => Element | undefined,
): Promise<Element | false | string> {
  const seen = await waits.until<Element | false>(timeoutMs, () => {
    const stale = typeof selector === "string" ? undefined : refs.staleness(selector);
    if (stale !== undefined) return { hindrance: stale, isFinal: true };
    const matches = [...sight.allMatches(selector)];
    const [chosen = false] = matches.flatMap((match) => choose(match) ?? []);
    return matches.length > 0 ? { value: chosen } : { hindrance: "" };
  });
  return "value" in seen ? seen.value : seen.hindrance;
}

/** The element that holds a frame, or what is in the way of it. */
export async function findFrame(wish: Wish): Promise<Element | string> {
  const seen = await waits.until(wish.timeoutMs, () => findReady(wish));
  state.frame = "value" in seen ? seen.value : undefined;
  return "value" in seen ? seen.value : seen.hindrance;
}

/** The first of several selectors that is none, by its index; -1 when all are selectors. */
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

/** The size of the viewport. */
export function viewport(): { width: number; height: number } {
  return { width: innerWidth, height: innerHeight };
}

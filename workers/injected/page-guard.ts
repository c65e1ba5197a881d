import type { ViewportPoint } from "./page-visibility.ts";
import * as visibility from "./page-visibility.ts";

/** The observed input: a press, which is blocked on any element but the expected element, or a pointer move. */
export type GuardedInput = "press" | "move";

export interface GuardOptions {
  readonly gesture: GuardedInput;
  /**
   * Whether an earlier attempt failed. If so, the element's box must be the same in two frames before the input, and an
   * element that moves away during a press no longer counts as missed.
   */
  readonly isDoubtful: boolean;
}

/** Result of the guard's observation. `unseen`: this document has received no event. */
type Verdict = "unseen" | "hit" | "missed";

/** The element that should receive the input, and the point of the input. */
interface Mark {
  readonly expected: Element;
  readonly point: ViewportPoint;
}

interface Guard {
  verdict: Verdict;
  /** Target of a press in this document itself. Undefined for moves, or if the target is a frame. */
  readonly pressed: Mark | undefined;
  /** Presses that the document had received before the guard was installed. */
  readonly presses: number;
  remove(): void;
}

let current: Guard | undefined;

/**
 * Whether input on `hit` counts as input on `element`: `hit` is inside of `element`, of the same button or link, or of
 * the element's label.
 */
export function acceptsHit(element: Element, hit: Element): boolean {
  const control = visibility.closest(element, "button, a, [role=button], [role=link]");
  for (let at: Element | undefined = hit; at; at = visibility.shownIn(at)) {
    if (at === element || at === control) return true;
  }
  return visibility.labelled(hit) === element;
}

/**
 * Observes the next click or move. A press on another element, or after `timeoutMs`, is blocked. If the element moves
 * away between press and release, the press counts as missed.
 *
 * Only listeners that the page added earlier to the window itself still receive a blocked event.
 */
export function guard(mark: Mark | undefined, guardOptions: GuardOptions & { timeoutMs: number }): void {
  release();
  const expected = mark?.expected;
  const { gesture, timeoutMs, isDoubtful } = guardOptions;
  const endsAt = performance.now() + timeoutMs;
  let box: DOMRect | undefined;
  const judge = (event: Event): Verdict => {
    const hit = hitBy(event);
    const isExpected = expected && hit instanceof Element && acceptsHit(expected, hit);
    if (own.verdict === "unseen") {
      box = expected && visibility.boxOf(expected);
      return isExpected && performance.now() < endsAt ? "hit" : "missed";
    }
    const isReleased = own.verdict === "hit" && event.type === "mouseup";
    const hasLeft =
      isReleased && !isExpected && expected && box && !visibility.isSameBox(box, visibility.boxOf(expected));
    return hasLeft && !isDoubtful ? "missed" : own.verdict;
  };
  const onEvent = (event: Event) => {
    if (!event.isTrusted) return;
    const before = own.verdict;
    own.verdict = judge(event);
    // If the page received the press, it must receive the release as well.
    const isForPage = own.verdict === "hit" || gesture === "move" || before === "hit";
    if (isForPage) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const press = "pointerdown mousedown pointerup mouseup click auxclick dblclick contextmenu touchstart touchend";
  const types = gesture === "move" ? ["pointermove", "mousemove"] : press.split(" ");
  const options = { capture: true, passive: false };
  for (const type of types) addEventListener(type, onEvent, options);
  // Removes the guard if the caller does not, for example because its connection was lost.
  const timer = setTimeout(() => own.remove(), timeoutMs + 10_000);
  const own: Guard = {
    verdict: "unseen",
    pressed: gesture === "press" && mark && !isFrame(visibility.hitAt(mark.point)) ? mark : undefined,
    presses: presses(),
    remove() {
      clearTimeout(timer);
      for (const type of types) removeEventListener(type, onEvent, options);
    },
  };
  current = own;
}

/** Returns the innermost target of an event, also inside of a known closed shadow root. */
function hitBy(event: Event): EventTarget | undefined {
  const [hit] = event.composedPath();
  const isHost = hit instanceof Element && visibility.shadowOf(hit) !== undefined;
  return isHost && event instanceof MouseEvent ? visibility.hitAt({ x: event.clientX, y: event.clientY }) : hit;
}

/** Result of a click or move in one document. */
export interface Released {
  readonly verdict: Verdict;
  /** Point in the document of a press that did not arrive, although the expected element is at that point. */
  readonly lostAt?: ViewportPoint;
  /** Title of the document afterwards. */
  readonly title: string;
}

/** Removes the guard and returns what the guard observed. */
export function release(): Released {
  const last = current;
  current = undefined;
  last?.remove();
  const { verdict = "unseen", pressed } = last ?? {};
  const hasNone = verdict === "unseen" && presses() === last?.presses;
  return { ...(pressed && hasNone ? findPress(pressed) : { verdict }), title: visibility.title() };
}

/**
 * Returns the verdict on a press that did not arrive in this document. Another element or a frame that has moved to the
 * point may have received the press, or the browser may have lost the press.
 */
function findPress({ expected, point }: Mark): Pick<Released, "verdict" | "lostAt"> {
  const hit = visibility.hitAt(point);
  if (!hit || !acceptsHit(expected, hit)) return { verdict: "missed" };
  return isFrame(hit)
    ? { verdict: "unseen" }
    : { verdict: "unseen", lostAt: { x: point.x + scrollX, y: point.y + scrollY } };
}

/**
 * Returns the number of presses that the document received, with or without listeners (Event Timing API, EventCounts).
 */
function presses(): number {
  return performance.eventCounts.get("pointerdown") ?? 0;
}

/** Whether an element contains another document. This document never receives the events of the other document. */
export function isFrame(element: Element | undefined): boolean {
  return element !== undefined && visibility.frameTags.has(visibility.read(Element.prototype, "localName", element));
}

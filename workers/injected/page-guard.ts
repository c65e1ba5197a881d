import type { Point } from "./page-aim.ts";

/*
 * What looks on while an element is hit. These functions run in the page, beside those of `page-sight.ts`: `page-script.ts`
 * sends their source there, with what is declared here.
 */

declare const sight: typeof import("./page-sight.ts");
declare const state: { guard: Guard | undefined };

/** The event that shows what was hit: a press, of which nothing reaches another element, or the pointer's coming. */
export type Stroke = "press" | "move";

export interface Target {
  readonly stroke: Stroke;
  /** The page has moved under an attempt before: its box is compared over two frames. */
  readonly isDoubtful: boolean;
}

/** What a guard has seen of a stroke. */
export type Verdict = "unseen" | "hit" | "missed";

/** An element that is to be hit, and where. */
export interface Mark {
  readonly expected: Element;
  readonly point: Point;
}

interface Guard {
  verdict: Verdict;
  /** What a press is to hit in this document itself; undefined where that is a frame, and for a move. */
  readonly pressed: Mark | undefined;
  /** The presses that the document had had before. */
  readonly presses: number;
  remove(): void;
}

/** Whether what hits an element is meant for another: it is in it, in the same button, or in the label of that field. */
export function takes(element: Element, hit: Element): boolean {
  const control = sight.closest(element, "button, a, [role=button], [role=link]");
  for (let at: Element | undefined = hit; at; at = sight.shownIn(at)) {
    if (at === element || at === control) return true;
  }
  return sight.labelled(hit) === element;
}

/**
 * Sees what the next stroke hits. Of a press that hits another element than the one expected, nothing is let through; nor
 * does it count when the element has moved away between press and release. Only what has listened at the window itself, and
 * for longer, hears of it all the same.
 */
export function guard(mark: Mark | undefined, wish: Target & { timeoutMs: number }): void {
  release();
  const expected = mark?.expected;
  const { stroke, timeoutMs, isDoubtful } = wish;
  const endsAt = performance.now() + timeoutMs;
  let box: DOMRect | undefined;
  const judge = (event: Event): Verdict => {
    const hit = hitBy(event);
    const isExpected = expected && hit instanceof Element && takes(expected, hit);
    if (own.verdict === "unseen") {
      box = expected && sight.boxOf(expected);
      return isExpected && performance.now() < endsAt ? "hit" : "missed";
    }
    const isReleased = own.verdict === "hit" && event.type === "mouseup";
    const hasLeft = isReleased && !isExpected && expected && box && !sight.isSameBox(box, sight.boxOf(expected));
    return hasLeft && !isDoubtful ? "missed" : own.verdict;
  };
  const onEvent = (event: Event) => {
    if (!event.isTrusted) return;
    const before = own.verdict;
    own.verdict = judge(event);
    // A button that the page has seen go down goes up for it too.
    const isForPage = own.verdict === "hit" || stroke === "move" || before === "hit";
    if (isForPage) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const press = "pointerdown mousedown pointerup mouseup click auxclick dblclick contextmenu touchstart touchend";
  const types = stroke === "move" ? ["pointermove", "mousemove"] : press.split(" ");
  const options = { capture: true, passive: false };
  for (const type of types) addEventListener(type, onEvent, options);
  // Whoever has aimed lets go of it, unless the connection to it is lost.
  const timer = setTimeout(() => own.remove(), timeoutMs + 10_000);
  const own: Guard = {
    verdict: "unseen",
    pressed: stroke === "press" && mark && !isFrame(sight.hitAt(mark.point)) ? mark : undefined,
    presses: presses(),
    remove() {
      clearTimeout(timer);
      for (const type of types) removeEventListener(type, onEvent, options);
    },
  };
  state.guard = own;
}

/** What an event has hit: where it does not tell what is in a closed shadow root, what is shown there. */
export function hitBy(event: Event): EventTarget | undefined {
  const [hit] = event.composedPath();
  const isHost = hit instanceof Element && sight.shadowOf(hit) !== undefined;
  return isHost && event instanceof MouseEvent ? sight.hitAt({ x: event.clientX, y: event.clientY }) : hit;
}

/** What a stroke has come to in a document. */
export interface Released {
  readonly verdict: Verdict;
  /** The point of the document whose press has not come to it, though what is to be hit lies there. */
  readonly lostAt?: Point;
  /** The title that the stroke has left the document with. */
  readonly title: string;
}

/** Takes the guard away; says what has become of the stroke. */
export function release(): Released {
  const last = state.guard;
  state.guard = undefined;
  last?.remove();
  const { verdict = "unseen", pressed } = last ?? {};
  const hasNone = verdict === "unseen" && presses() === last?.presses;
  return { ...(pressed && hasNone ? findPress(pressed) : { verdict }), title: sight.title() };
}

/** Of a press that the document has not had: a frame has, which the page has moved there, or the browser has lost it. */
export function findPress({ expected, point }: Mark): Pick<Released, "verdict" | "lostAt"> {
  const hit = sight.hitAt(point);
  if (!hit || !takes(expected, hit)) return { verdict: "missed" };
  return isFrame(hit)
    ? { verdict: "unseen" }
    : { verdict: "unseen", lostAt: { x: point.x + scrollX, y: point.y + scrollY } };
}

/** Presses that the document has had, whoever has listened (Event Timing API, EventCounts). */
export function presses(): number {
  return performance.eventCounts.get("pointerdown") ?? 0;
}

/** Whether an element shows another document, which has what is done there: the one around it sees nothing of that. */
export function isFrame(element: Element | undefined): boolean {
  return element !== undefined && Element.prototype.matches.call(element, "iframe, frame, object, embed, fencedframe");
}

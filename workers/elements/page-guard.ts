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

interface Guard {
  verdict: Verdict;
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
export function guard(expected: Element | undefined, wish: Target & { timeoutMs: number }): void {
  release();
  const { stroke, timeoutMs, isDoubtful } = wish;
  const endsAt = performance.now() + timeoutMs;
  let box: DOMRect | undefined;
  const judge = (event: Event): Verdict => {
    const [hit] = event.composedPath();
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
    remove() {
      clearTimeout(timer);
      for (const type of types) removeEventListener(type, onEvent, options);
    },
  };
  state.guard = own;
}

/** Takes the guard away; says what it has seen, and the title that the stroke has left the document with. */
export function release(): { readonly verdict: Verdict; readonly title: string } {
  const { verdict = "unseen" } = state.guard ?? {};
  state.guard?.remove();
  state.guard = undefined;
  return { verdict, title: sight.title() };
}

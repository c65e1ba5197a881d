import { addElement, type ElementLines, type VisitState } from "./element-lines.ts";
import { outerPoint } from "./page-aim.ts";
import type { Clip } from "./page-clip.ts";
import * as clips from "./page-clip.ts";
import { isFrame } from "./page-guard.ts";
import { isDoubtful, keepDoubtful } from "./page-hosts.ts";
import * as items from "./page-items.ts";
import { readPageHead } from "./page-reading.ts";
import { keep, numberOf } from "./page-refs.ts";
import * as roles from "./page-role.ts";
import { innerPoint } from "./page-scroll.ts";
import { search } from "./page-search.ts";
import { isSilent } from "./page-text.ts";
import * as visibility from "./page-visibility.ts";
import { watchChanges } from "./page-wait.ts";
import { plain, quote, tidy } from "./plain-text.ts";
import { addLine, addText, closeContainers, endText, type Found, type NestedFrame } from "./snapshot-lines.ts";
import { TimeBudget } from "./time-budget.ts";

/*
 * The time for a snapshot is proportional to the content in view and the size of the output, and limited by `timeMs`.
 */

export interface SnapshotOptions {
  /** Number for the document, used if the document has no number yet. */
  readonly epoch: number;
  /** Whether to include content outside of the viewport. */
  readonly isWhole: boolean;
  /** Text that each returned line must contain, except lines of frames. If empty, all lines are returned. */
  readonly find: string;
  /** Whether matches stay unnumbered until `numberFound`, because some may not be returned. */
  readonly isTentative: boolean;
  /** Maximum bytes of the output. */
  readonly room: number;
  /** Time budget in milliseconds. */
  readonly timeMs: number;
  /** Part of this document's viewport that is visible in the page. Null for the whole viewport. */
  readonly clip: Clip | null;
  /** Position of this document's viewport in the viewport of the page. */
  readonly origin: visibility.ViewportPoint;
  /** Whether this snapshot replaces a snapshot that lacked closed shadow roots or listeners. */
  readonly isAgain: boolean;
}

export interface DocumentSnapshot {
  readonly epoch: number;
  readonly lines: readonly string[];
  readonly frames: readonly NestedFrame[];
  /** Whether lines are missing because room or time did not suffice. */
  readonly isCut: boolean;
  /** Number of elements that may have an unknown closed shadow root. */
  readonly doubtful: number;
  readonly title: string;
  readonly scroll: { readonly x: number; readonly y: number };
  /** Height of the whole document in CSS pixels. */
  readonly height: number;
}

/** State of a snapshot in progress. */
interface Walk extends ElementLines {
  readonly options: SnapshotOptions;
  readonly budget: TimeBudget;
  readonly frames: NestedFrame[];
  /** Elements that may contain the searched text. If defined, other elements are skipped. */
  readonly holders: ReadonlySet<Element> | undefined;
  /** Part of this document's viewport that is visible in the page. */
  readonly viewport: Clip;
  /** Elements visible at sample points of the viewport, with their ancestors. */
  readonly seen: () => ReadonlySet<Element>;
  readonly doubtful: Element[];
  isInView: boolean;
  visited: number;
  /** Number of descendants that `hasPart` may still test. */
  partsLeft: number;
}

/** Maximum number of descendants that `hasPart` tests per snapshot, about 2 us each. */
const maxParts = 2_000;

/** Matches of the last search, for `numberFound`. */
let lastFound: ReadonlyMap<number, Found> | undefined;

export const takeSnapshot = (options: SnapshotOptions): DocumentSnapshot =>
  visibility.withMemo(() => takeSnapshotNow(options));

function takeSnapshotNow(options: SnapshotOptions): DocumentSnapshot {
  const kept = keep(options.epoch);
  if (!options.isAgain && options.find === "") kept.snapshots += 1;
  watchChanges();
  const viewport = options.clip ?? clips.viewportClip();
  const find = plain(options.find);
  const beganAt = performance.now();
  // If the search takes longer than its part of the time, the rest is used to visit all nodes.
  const found = find === "" ? undefined : search(find, beganAt + 0.75 * options.timeMs);
  let seen: ReadonlySet<Element> | undefined;
  const walk: Walk = {
    kept,
    options,
    find,
    budget: new TimeBudget(options.timeMs - (performance.now() - beganAt)),
    lines: [],
    frames: [],
    holders: found?.holders,
    viewport,
    seen: () => (seen ??= seenIn(viewport)),
    written: new Set(),
    around: [],
    doubtful: [...(found?.doubtful ?? [])],
    found: new Map(),
    isInView: options.find === "",
    frameLine: -1,
    text: "",
    textMore: 0,
    textNode: undefined,
    visited: 0,
    partsLeft: maxParts,
    room: options.room,
    isCut: false,
  };
  walkThrough(walk);
  if (walk.isInView && options.isWhole && !walk.isCut) {
    walk.isInView = false;
    walkThrough(walk);
  }
  keepDoubtful(walk.doubtful);
  lastFound = walk.found;
  return {
    epoch: kept.epoch,
    lines: walk.lines,
    frames: walk.frames,
    isCut: walk.isCut,
    doubtful: walk.doubtful.length,
    ...readPageHead(),
  };
}

/**
 * Numbers the matches of the last search in the given lines, then forgets the search. Returns undefined for lines
 * without a match.
 */
export function numberFound(epoch: number, lines: readonly number[]): (number | undefined)[] {
  const found = lastFound;
  lastFound = undefined;
  return lines.map((line) => {
    const { element, description } = found?.get(line) ?? {};
    return element && description !== undefined ? numberOf(keep(epoch), element, description) : undefined;
  });
}

/** Returns the elements at sample points of the viewport, with their ancestors. Takes about 12 ms, at most 120 ms. */
function seenIn({ left, top, right, bottom }: Clip): Set<Element> {
  const seen = new Set<Element>();
  // A busy machine may interrupt the samples several times, for up to 8 ms of the budget each.
  const budget = new TimeBudget(120);
  // Begins with a coarse grid, so that large elements are found even if the time does not suffice.
  for (const step of [128, 64, 32]) {
    for (let y = top + step / 2; y < bottom; y += step) {
      if (budget.isSpent()) return seen;
      for (let x = left + step / 2; x < right; x += step) {
        for (let at = visibility.hitAt({ x, y }); at && !seen.has(at); at = visibility.shownIn(at)) seen.add(at);
      }
    }
  }
  return seen;
}

/** Visits the document in the order in which it is rendered. */
function walkThrough(walk: Walk): void {
  const whole = { left: -scrollX, top: -scrollY, right: Number.POSITIVE_INFINITY, bottom: Number.POSITIVE_INFINITY };
  const flags = {
    isWritten: false,
    isHidden: false,
    mayLock: false,
    isPointer: false,
    isGrab: false,
    isInActive: false,
  };
  const visit = {
    nodes: [document.documentElement],
    index: 0,
    clip: walk.viewport,
    edge: whole,
    items: items.empty.items,
  };
  const visits: VisitState[] = [{ ...visit, ...flags, isBlock: true, depth: 0 }];
  for (let visit = visits.at(-1); visit; visit = visits.at(-1)) {
    const node = visit.nodes[visit.index];
    visit.index += 1;
    walk.visited += 1;
    if (walk.visited % 64 === 0 && walk.budget.isSpent()) walk.isCut = true;
    if (walk.isCut) break;
    if (node instanceof Text) {
      if (!visit.isWritten && !visit.isHidden) addText(walk, node);
    } else if (node instanceof Element) {
      const inner = enter(walk, visit, node);
      if (inner && visits.length < 400) visits.push(inner);
      else if (inner) walk.isCut = true;
    } else if (!node) {
      visits.pop();
      if (visit.isBlock) endText(walk);
      closeContainers(walk, visits.at(-1)?.depth ?? 0);
    }
  }
  endText(walk);
  closeContainers(walk, 0);
}

/** Adds the line of an element, if the element is visible, and returns its contents to visit. */
function enter(walk: Walk, visit: VisitState, element: Element): VisitState | undefined {
  if (isSilent(element) || isSkippedBySearch(walk, element)) return undefined;
  const box = visibility.boxOf(element);
  const isSeen = () => mayShowInner(walk, visit, element) && walk.seen().has(element);
  const isEmpty = box.width * box.height === 0;
  if (walk.isInView && !isEmpty && !clips.meets(box, visit.clip) && !isSeen()) return undefined;
  // An element with a box is rendered, except possibly inside of a locked element (see `mayLock`).
  if ((isEmpty || visit.mayLock) && !roles.isRendered(element)) return undefined;
  if (!walk.holders && walk.doubtful.length < 64 && isDoubtful(element, box)) walk.doubtful.push(element);
  const style = getComputedStyle(element);
  const isBlock = !isInLine(style);
  if (isBlock) endText(walk);
  const { clipper } = visit;
  // An element that is visible outside of its container is not clipped by the container.
  const hasLeft = clipper !== undefined && leaves(element, clipper, style) && isSeen();
  const clip = hasLeft ? walk.viewport : visit.clip;
  const isHidden = style.visibility !== "visible";
  const { overflowX, overflowY, cursor } = style;
  const hides = overflowX !== "visible" || overflowY !== "visible";
  const scrolls = hides && /auto|scroll/.test(overflowX + overflowY);
  const isClipper = hides && isBlock && !clips.isRoot(element);
  const inner: VisitState = {
    nodes: roles.childrenOf(element),
    index: 0,
    isHidden,
    isBlock,
    depth: visit.depth,
    clip: isClipper ? clips.overlap(box, clip) : clip,
    clipper: isClipper ? element : hasLeft ? undefined : clipper,
    edge: isClipper ? edgeOf(box, visit.edge, scrolls) : visit.edge,
    isWritten: visit.isWritten,
    mayLock: visit.mayLock || style.contentVisibility === "hidden" || element instanceof HTMLDetailsElement,
    isPointer: cursor === "pointer",
    isGrab: cursor !== "auto" && /^(?:grab|grabbing|move|(?:[a-z]+-)?resize)$/.test(cursor),
    isInActive: visit.isInActive,
    items: visit.items,
  };
  if (isHidden || (isEmpty && !clips.isRoot(element))) return inner;
  if (isFrame(element)) return void addFrame(walk, visit, element, box);
  return addElement(walk, visit, inner, element, box);
}

/** Whether an element outside of its clip, or one of its descendants, may be in view. Compares positions and boxes. */
function mayShowInner(walk: Walk, { clipper }: VisitState, element: Element): boolean {
  if (clipper && !hasPart(walk, element, (part) => leaves(part, clipper))) return false;
  return hasPart(walk, element, (part) => clips.meets(visibility.boxOf(part), walk.viewport));
}

/** Whether an element or a descendant passes a test. Also true if shadow roots or `partsLeft` prevent a full test. */
function hasPart(walk: Walk, element: Element, test: (part: Element) => boolean): boolean {
  if (isHost(element) || test(element)) return true;
  for (const inner of Element.prototype.getElementsByTagName.call(element, "*")) {
    walk.partsLeft -= 1;
    if (walk.partsLeft < 0 || isHost(inner) || test(inner)) return true;
  }
  return false;
}

/** Whether an element may have contents in a shadow root. */
function isHost(element: Element): boolean {
  return roles.tagOf(element).includes("-") || visibility.shadowOf(element) !== undefined;
}

/** Whether an element may be visible outside of its ancestor `clipper`, because of its own position. */
function leaves(element: Element, clipper: Element, { position } = getComputedStyle(element)): boolean {
  if (position !== "absolute") return position === "fixed";
  const container =
    element instanceof HTMLElement ? visibility.read(HTMLElement.prototype, "offsetParent", element) : null;
  return container === null || !Node.prototype.contains.call(clipper, container);
}

/** Returns the area in which the contents of a box that clips or scrolls can become visible by scrolling. */
function edgeOf(box: Clip, around: Clip, scrolls: boolean): Clip {
  return scrolls && clips.meets(box, around) ? clips.everywhere : clips.overlap(box, around);
}

/**
 * Whether a search skips an element. Rendered inline elements are never skipped: their text is joined with their
 * siblings' text.
 */
function isSkippedBySearch(walk: Walk, element: Element): boolean {
  if (walk.holders?.has(element) ?? true) return false;
  if (!roles.isRendered(element)) return true;
  if (isInLine(getComputedStyle(element))) return false;
  endText(walk);
  return true;
}

function isInLine({ display }: CSSStyleDeclaration): boolean {
  return display.startsWith("inline") || display === "contents";
}

function addFrame(walk: Walk, visit: VisitState, element: Element, box: DOMRect): void {
  // Frames with a side of less than 16 pixels are tracking pixels.
  const isTiny = box.width < 16 || box.height < 16;
  if (isTiny || (!walk.isInView && walk.written.has(element))) return;
  endText(walk);
  const name = tidy(roles.attribute(element, "title", 400) || roles.attribute(element, "name", 400), 160);
  const seen = clips.overlap(
    box,
    walk.isInView ? clips.overlap(visit.clip, clips.viewportClip()) : clips.viewportClip(),
  );
  const isSeen = seen.left < seen.right && seen.top < seen.bottom;
  const from = innerPoint(element, { x: seen.left, y: seen.top });
  const to = innerPoint(element, { x: seen.right, y: seen.bottom });
  const clip = isSeen ? { left: from.x, top: from.y, right: to.x, bottom: to.y } : null;
  const number = numberOf(walk.kept, element, "");
  if (!addLine(walk, element, name === "" ? "frame" : `frame ${quote(name, 160)}`, true)) return;
  const line = walk.lines.length - 1;
  const { x, y } = outerPoint(element, { x: 0, y: 0 });
  const origin = { x: walk.options.origin.x + x, y: walk.options.origin.y + y };
  walk.frames.push({ ref: { epoch: walk.kept.epoch, number }, line, indent: walk.around.length + 1, clip, origin });
}

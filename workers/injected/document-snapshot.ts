import type { Clip } from "./page-clip.ts";
import * as clips from "./page-clip.ts";
import { isFrame } from "./page-guard.ts";
import { isDoubtful, keepDoubtful } from "./page-hosts.ts";
import { isNews, type Kept, keep, numberFor, numberOf, type Ref } from "./page-refs.ts";
import * as roles from "./page-role.ts";
import { innerPoint } from "./page-scroll.ts";
import { search } from "./page-search.ts";
import { isSilent } from "./page-text.ts";
import * as visibility from "./page-visibility.ts";
import { watchChanges } from "./page-wait.ts";
import { plain, quote, says, tidy } from "./plain-text.ts";

/* The time of a snapshot grows with the content in view and the size of the output, and is bounded by `timeMs`. */

export interface SnapshotOptions {
  /** Number for the document, used if the document has no number yet. */
  readonly epoch: number;
  /** Whether to include content outside of the viewport. */
  readonly isWhole: boolean;
  /** Text that each returned line contains. Empty for all lines. */
  readonly find: string;
  /** Whether matches stay unnumbered until `numberFound`, because some may not be returned. */
  readonly isTentative: boolean;
  /** Longest output, in bytes. */
  readonly room: number;
  readonly timeMs: number;
  /** Visible part of the viewport. Null for the whole viewport. */
  readonly clip: Clip | null;
  /** Whether this repeats a snapshot that unknown closed shadow roots interrupted. */
  readonly isAgain: boolean;
}

/** A frame found by a snapshot. */
export interface NestedFrame {
  readonly ref: Ref;
  /** Index of the frame's line. */
  readonly line: number;
  /** Indentation of the frame's contents. */
  readonly indent: number;
  /** Visible part of the frame's viewport. */
  readonly clip: Clip | null;
}

export interface DocumentSnapshot {
  readonly epoch: number;
  readonly lines: readonly string[];
  readonly frames: readonly NestedFrame[];
  readonly isCut: boolean;
  /** Number of elements that may have an unknown closed shadow root. */
  readonly doubtful: number;
  readonly title: string;
  readonly scroll: { readonly x: number; readonly y: number };
  readonly height: number;
}

/** State of a snapshot in progress. */
interface Walk {
  readonly kept: Kept;
  readonly options: SnapshotOptions;
  readonly find: string;
  readonly endsAt: number;
  readonly lines: string[];
  readonly frames: NestedFrame[];
  /** The only elements that may contain the searched text. Undefined to visit all elements. */
  readonly holders: ReadonlySet<Element> | undefined;
  readonly viewport: Clip;
  /** Elements visible at sample points of the viewport, with their ancestors. */
  readonly seen: () => ReadonlySet<Element>;
  readonly written: Set<Node>;
  /** Containers of the next line, outermost first. `line` is empty once written. */
  readonly around: { readonly element: Element; line: string }[];
  readonly doubtful: Element[];
  /** Matches by line. */
  readonly found: Map<number, Found>;
  isInView: boolean;
  text: string;
  textNode: Node | undefined;
  visited: number;
  room: number;
  isCut: boolean;
}

/** An actionable match of a search, with its description. */
interface Found {
  readonly element: Element;
  readonly description: string;
}

/** A list of nodes being visited, with their common state. */
interface Place {
  readonly nodes: ArrayLike<Node>;
  index: number;
  readonly clip: Clip;
  /** Area outside of which nothing can become visible by scrolling. */
  readonly edge: Clip;
  /** Whether the text inside is already part of a line. */
  readonly isWritten: boolean;
  readonly isHidden: boolean;
  readonly isPointer: boolean;
  readonly isInActive: boolean;
  readonly isBlock: boolean;
  /** Number of enclosing container lines. */
  readonly depth: number;
}

/** Matches of the last search. */
let lastFound: ReadonlyMap<number, Found> | undefined;

export function takeSnapshot(options: SnapshotOptions): DocumentSnapshot {
  const kept = keep(options.epoch);
  if (!options.isAgain && options.find === "") kept.snapshots += 1;
  watchChanges();
  const viewport = clips.viewportClip();
  const clip = options.clip ?? viewport;
  const find = plain(options.find);
  const beganAt = performance.now();
  // The search gets only a part of the time, so that all nodes can be visited if the search takes too long.
  const found = find === "" ? undefined : search(find, beganAt + 0.75 * options.timeMs);
  let seen: ReadonlySet<Element> | undefined;
  const walk: Walk = {
    kept,
    options,
    find,
    endsAt: beganAt + options.timeMs,
    lines: [],
    frames: [],
    holders: found?.holders,
    viewport,
    seen: () => (seen ??= seenIn(clip)),
    written: new Set(),
    around: [],
    doubtful: [...(found?.doubtful ?? [])],
    found: new Map(),
    isInView: options.find === "",
    text: "",
    textNode: undefined,
    visited: 0,
    room: options.room,
    isCut: false,
  };
  walkThrough(walk, clip);
  if (walk.isInView && options.isWhole && !walk.isCut) {
    walk.isInView = false;
    walkThrough(walk, clip);
  }
  keepDoubtful(walk.doubtful);
  lastFound = walk.found;
  const page = document.scrollingElement ?? document.documentElement;
  return {
    epoch: kept.epoch,
    lines: walk.lines,
    frames: walk.frames,
    isCut: walk.isCut,
    doubtful: walk.doubtful.length,
    title: visibility.title(),
    scroll: { x: scrollX, y: scrollY },
    height: page?.scrollHeight ?? 0,
  };
}

/** Numbers the matches of the last search in the given lines, then forgets the search. */
export function numberFound(epoch: number, lines: readonly number[]): (number | undefined)[] {
  const found = lastFound;
  lastFound = undefined;
  return lines.map((line) => {
    const { element, description } = found?.get(line) ?? {};
    return element && description !== undefined ? numberOf(keep(epoch), element, description) : undefined;
  });
}

/** Returns the elements at sample points of the viewport, with their ancestors. */
function seenIn({ left, top, right, bottom }: Clip): Set<Element> {
  const seen = new Set<Element>();
  const endsAt = performance.now() + 40;
  // Samples coarsely first: on a slow page at least the large elements are found.
  for (const step of [128, 64, 32]) {
    for (let y = top + step / 2; y < bottom; y += step) {
      if (performance.now() > endsAt) return seen;
      for (let x = left + step / 2; x < right; x += step) {
        for (let at = visibility.hitAt({ x, y }); at && !seen.has(at); at = visibility.shownIn(at)) seen.add(at);
      }
    }
  }
  return seen;
}

/** Visits the document in the order in which it is rendered. */
function walkThrough(walk: Walk, clip: Clip): void {
  const whole = { left: -scrollX, top: -scrollY, right: Number.POSITIVE_INFINITY, bottom: Number.POSITIVE_INFINITY };
  const start = { nodes: [document.documentElement], index: 0, clip, edge: whole, isWritten: false, isHidden: false };
  const places: Place[] = [{ ...start, isPointer: false, isInActive: false, isBlock: true, depth: 0 }];
  for (let place = places.at(-1); place; place = places.at(-1)) {
    const node = place.nodes[place.index];
    place.index += 1;
    walk.visited += 1;
    if (walk.visited % 64 === 0 && performance.now() > walk.endsAt) walk.isCut = true;
    if (walk.isCut) break;
    if (node instanceof Text) addText(walk, place, node);
    else if (node instanceof Element) {
      const inner = enter(walk, place, node);
      if (inner && places.length < 400) places.push(inner);
      else if (inner) walk.isCut = true;
    } else if (!node) {
      places.pop();
      if (place.isBlock) endText(walk);
      walk.around.length = Math.min(walk.around.length, places.at(-1)?.depth ?? 0);
    }
  }
  endText(walk);
  walk.around.length = 0;
}

/** Adds the line of an element and returns its contents to visit. */
function enter(walk: Walk, place: Place, element: Element): Place | undefined {
  if (isSilent(element) || passesBy(walk, element)) return undefined;
  const box = visibility.boxOf(element);
  const isSeen = () => walk.seen().has(element);
  const isEmpty = box.width * box.height === 0;
  if (walk.isInView && !isEmpty && !isSeen() && !clips.meets(box, place.clip)) return undefined;
  if (!roles.isRendered(element)) return undefined;
  if (!walk.holders && walk.doubtful.length < 64 && isDoubtful(element, box)) walk.doubtful.push(element);
  const style = getComputedStyle(element);
  const isBlock = !isInLine(style);
  if (isBlock) endText(walk);
  // An element that is visible outside of its container is not clipped by the container.
  const clip = place.clip === walk.viewport || isSeen() ? walk.viewport : place.clip;
  const isHidden = style.visibility !== "visible";
  const hides = style.overflowX !== "visible" || style.overflowY !== "visible";
  const scrolls = /auto|scroll/.test(style.overflowX + style.overflowY);
  const inner: Place = {
    nodes: roles.childrenOf(element),
    index: 0,
    isHidden,
    isBlock,
    depth: place.depth,
    clip: hides && isBlock && !clips.isRoot(element) ? clips.overlap(box, clip) : clip,
    edge: hides && !scrolls && isBlock && !clips.isRoot(element) ? clips.overlap(box, place.edge) : place.edge,
    isWritten: place.isWritten,
    isPointer: style.cursor === "pointer",
    isInActive: place.isInActive,
  };
  if (isHidden || (isEmpty && !clips.isRoot(element))) return inner;
  if (isFrame(element)) return void addFrame(walk, place, element, box);
  return describe(walk, place, inner, element, box);
}

/**
 * Whether a search skips an element. Inline elements are never skipped: their text is joined with their siblings' text.
 */
function passesBy(walk: Walk, element: Element): boolean {
  if (walk.holders?.has(element) ?? true) return false;
  if (!roles.isRendered(element)) return true;
  if (isInLine(getComputedStyle(element))) return false;
  endText(walk);
  return true;
}

function isInLine({ display }: CSSStyleDeclaration): boolean {
  return display.startsWith("inline") || display === "contents";
}

/** Adds the line of a visible element, if the element has a line, and returns its contents to visit. */
function describe(walk: Walk, place: Place, inner: Place, element: Element, box: DOMRect): Place | undefined {
  const role = roles.roleOf(element);
  if (isActive(place, inner, element, role)) {
    const isDisabled = visibility.isDisabled(element);
    const canAct = !isDisabled && isWithinReach(walk, place, element, box);
    if (canAct || (isDisabled && roles.isActive(element, role))) {
      endText(walk);
      const description = roles.describe(element);
      const { kept, options } = walk;
      const ref = canAct ? ` ref=s${kept.epoch}e${options.isTentative ? 0 : numberFor(kept, element)}` : "";
      const isAdded = addLine(walk, element, `${description}${ref}${roles.stateOf(element)}`);
      if (canAct && isAdded && options.isTentative) walk.found.set(walk.lines.length - 1, { element, description });
      // A search does not update the descriptions of elements that it does not return.
      else if (canAct && (isAdded || options.find === "")) numberOf(kept, element, description);
      const isField = /^(?:input|select|textarea)$/.test(roles.tagOf(element));
      const isShort = roles.contentOf(element, 160).length < 160;
      return isField ? undefined : { ...inner, isWritten: isShort, isInActive: true };
    }
    if (element instanceof HTMLSelectElement) return undefined;
  }
  if (role === "heading" || role === "img") {
    const body = `${roles.describe(element)}${role === "heading" ? roles.stateOf(element) : ""}`;
    if (!place.isWritten && body.includes('"')) {
      endText(walk);
      addLine(walk, element, body);
    }
    return role === "img" && element instanceof HTMLImageElement ? undefined : { ...inner, isWritten: true };
  }
  if (!roles.groupRoles.has(role) || place.isWritten || !walk.isInView) return inner;
  endText(walk);
  const name = roles.attribute(element, "aria-label", 160);
  walk.around.push({ element, line: name === "" ? role : `${role} ${quote(name, 160)}` });
  return { ...inner, isBlock: true, depth: walk.around.length };
}

/** Whether a person would expect an element to react to an action. */
function isActive(place: Place, inner: Place, element: Element, role: string): boolean {
  if (element instanceof HTMLLabelElement) {
    const { control } = element;
    if (!control || visibility.isDisabled(control)) return false;
    // A label represents its control if the page hides the control and draws a replacement.
    return clips.meets(visibility.boxOf(element), place.clip) ? !clips.isHit(control, true) : !clips.isDrawn(control);
  }
  if (roles.isActive(element, role)) return true;
  return inner.isPointer && !place.isPointer && !place.isInActive && !clips.isRoot(element);
}

/** Whether a person can reach an element: directly if it is in view, else by scrolling. */
function isWithinReach(walk: Walk, place: Place, element: Element, box: DOMRect): boolean {
  if (clips.meets(box, place.clip) && clips.isHit(element, false)) return true;
  if (walk.isInView) return false;
  // Scrolling does not uncover an element that is fully in view.
  const isFarOff = !clips.contains(clips.viewportClip(), box) || !clips.contains(place.clip, box);
  return isFarOff && clips.meets(box, place.edge) && clips.isDrawn(element);
}

function addFrame(walk: Walk, place: Place, element: Element, box: DOMRect): void {
  // Frames of less than 16 pixels a side are tracking pixels.
  const isTiny = box.width < 16 || box.height < 16;
  if (isTiny || (!walk.isInView && walk.written.has(element))) return;
  endText(walk);
  const name = tidy(roles.attribute(element, "title", 160) || roles.attribute(element, "name", 160), 160);
  const seen = clips.overlap(
    box,
    walk.isInView ? clips.overlap(place.clip, clips.viewportClip()) : clips.viewportClip(),
  );
  const isSeen = seen.left < seen.right && seen.top < seen.bottom;
  const from = innerPoint(element, { x: seen.left, y: seen.top });
  const to = innerPoint(element, { x: seen.right, y: seen.bottom });
  const clip = isSeen ? { left: from.x, top: from.y, right: to.x, bottom: to.y } : null;
  const number = numberOf(walk.kept, element, "");
  const line = walk.lines.length;
  addLine(walk, element, name === "" ? "frame" : `frame ${quote(name, 160)}`, true);
  if (walk.lines.length === line) return;
  walk.frames.push({ ref: { epoch: walk.kept.epoch, number }, line, indent: walk.around.length + 1, clip });
}

function addText(walk: Walk, place: Place, node: Text): void {
  if (place.isWritten || place.isHidden || walk.text.length > 800) return;
  walk.text += visibility.read(CharacterData.prototype, "data", node).slice(0, 4_000);
  walk.textNode ??= node;
}

/** Adds a line for the collected text. */
function endText(walk: Walk): void {
  const { text, textNode } = walk;
  walk.text = "";
  walk.textNode = undefined;
  const shown = tidy(text, 400);
  if (textNode && shown !== "") addLine(walk, textNode, `text ${JSON.stringify(shown)}`);
}

/** Adds a line, preceded by the lines of its containers. Returns false if the line was skipped or did not fit. */
function addLine(walk: Walk, node: Node, body: string, isFrame = false): boolean {
  if (walk.written.has(node) || walk.isCut) return false;
  if (!isFrame && walk.find !== "" && !says(body, walk.find)) return false;
  walk.written.add(node);
  for (const [indent, around] of walk.around.entries()) {
    if (around.line !== "") writeLine(walk, around.element, around.line, indent);
    around.line = "";
  }
  return writeLine(walk, node, body, walk.around.length);
}

function writeLine(walk: Walk, node: Node, body: string, indent: number): boolean {
  // Search results are never marked as new.
  const isNew = walk.find === "" && isNews(walk.kept, node, body);
  const mark = isNew ? "*" : "-";
  const line = `${"  ".repeat(Math.min(indent, 12))}${mark} ${body}`;
  walk.room -= new TextEncoder().encode(line).length + 1;
  if (walk.room < 0) walk.isCut = true;
  else walk.lines.push(line);
  return !walk.isCut;
}

import type { Clip } from "./page-clip.ts";
import * as clips from "./page-clip.ts";
import * as graphics from "./page-graphics.ts";
import * as items from "./page-items.ts";
import { numberFor, numberOf } from "./page-refs.ts";
import * as roles from "./page-role.ts";
import * as visibility from "./page-visibility.ts";
import { quote } from "./plain-text.ts";
import { addLine, endText, type Found, type Lines, openContainer, writeContainers } from "./snapshot-lines.ts";

/* Snapshot lines of elements: whether an element is interactive, and its description. */

/** The part of a snapshot's state that determines the line of an element. */
export interface ElementLines extends Lines {
  readonly options: { readonly isTentative: boolean; readonly origin: visibility.ViewportPoint };
  /** Actionable matches of a search, by the index of their line. */
  readonly found: Map<number, Found>;
  readonly isInView: boolean;
}

/** State of visiting a list of sibling nodes. */
export interface VisitState {
  readonly nodes: ArrayLike<Node>;
  index: number;
  readonly clip: Clip;
  /** The innermost element that clips the nodes. */
  readonly clipper?: Element | undefined;
  /** Area in which contents can become visible by scrolling. */
  readonly edge: Clip;
  /** Whether the text inside is already part of a line. */
  readonly isWritten: boolean;
  readonly isHidden: boolean;
  /** Whether an ancestor may lock its contents (`content-visibility`): they have boxes, but are not rendered. */
  readonly mayLock: boolean;
  readonly isPointer: boolean;
  /** Whether the cursor indicates that the contents can be moved. */
  readonly isGrab: boolean;
  /** Whether the nodes are inside of an interactive element without interactive parts. */
  readonly isInActive: boolean;
  /** Elements that count as interactive because they are repeated parts or icons of an interactive element. */
  readonly items: ReadonlySet<Element>;
  readonly isBlock: boolean;
  /** Number of enclosing container lines. */
  readonly depth: number;
}

/** Adds the line of a visible element, if the element has a line, and returns its contents to visit. */
export function addElement(
  walk: ElementLines,
  visit: VisitState,
  inner: VisitState,
  element: Element,
  box: DOMRect,
): VisitState | undefined {
  const role = graphics.graphicRoleOf(element, box) || roles.roleOf(element);
  const interactivity = interactivityOf(visit, inner, element, role);
  const inside = interactivity ? roles.insideOf(element, role) : items.empty;
  const around = inside.items.size > 0 ? { ...inner, items: inside.items } : inner;
  if (interactivity && !(interactivity === "listens" && isDelegate(inside, box))) {
    const isDisabled = visibility.isDisabled(element);
    const canAct = !isDisabled && isWithinReach(walk, visit, element, box);
    if (canAct || (isDisabled && roles.isActive(element, role))) {
      const active = { element, role, inside, canAct, isGrab: inner.isGrab && !visit.isGrab, box };
      return describeActive(walk, around, active);
    }
    if (element instanceof HTMLSelectElement) return undefined;
  }
  if (role === "canvas" || role === "chart") {
    endText(walk);
    addLine(walk, element, `${graphics.describeGraphic(element, role)}${graphics.boxState(box, walk.options.origin)}`);
    return { ...around, isWritten: visit.isWritten };
  }
  if (role === "heading" || role === "img") {
    const body = `${roles.describe(element)}${role === "heading" ? roles.stateOf(element) : ""}`;
    if (!visit.isWritten && body.includes('"')) {
      endText(walk);
      addLine(walk, element, body);
    }
    return role === "img" && element instanceof HTMLImageElement ? undefined : { ...around, isWritten: true };
  }
  if (isWrittenByField(walk, visit, element)) return { ...around, isWritten: true };
  if (!roles.groupRoles.has(role) || visit.isWritten || walk.find !== "") return around;
  endText(walk);
  const name = roles.attribute(element, "aria-label", 400);
  const head = name === "" ? role : `${role} ${quote(name, 160)}`;
  openContainer(walk, {
    element,
    head,
    tail: "",
    isSlight: /^(?:cell|gridcell|columnheader|rowheader|listitem|group)$/.test(head),
  });
  return { ...around, isBlock: true, depth: walk.around.length };
}

/** An interactive element. */
interface Active {
  readonly element: Element;
  readonly role: string;
  readonly inside: items.Inside;
  readonly canAct: boolean;
  /** Whether the cursor over the element indicates that the element can be moved. */
  readonly isGrab: boolean;
  readonly box: DOMRect;
}

/**
 * Adds the line of an interactive element. If parts of the element are interactive, the element's line contains their
 * lines.
 */
function describeActive(
  walk: ElementLines,
  inner: VisitState,
  { element, role, inside, canAct, isGrab, box }: Active,
): VisitState | undefined {
  endText(walk);
  const { kept, options } = walk;
  const drawn = graphics.describeGraphic(element, role);
  const description = drawn || roles.describe(element, inside);
  const known = drawn === "" ? description : "";
  const ref = canAct ? ` ref=s${kept.epoch}e${options.isTentative ? 0 : numberFor(kept, element)}` : "";
  const drag = isGrab || items.isDraggable(element) ? " draggable" : "";
  const isVague = /^(?:canvas|chart|slider)\b|^clickable$|\(color: /.test(description);
  const tail = `${ref}${roles.stateOf(element)}${drag}${isVague ? graphics.boxState(box, options.origin) : ""}`;
  const isField = /^(?:input|select|textarea)$/.test(roles.tagOf(element));
  const isContainer = (inside.hasActive || inside.items.size > 0) && walk.find === "";
  if (isContainer && !walk.written.has(element)) {
    openContainer(walk, { element, head: description, tail, isSlight: false });
    walk.written.add(element);
    writeContainers(walk);
    if (canAct) numberOf(kept, element, known);
    return { ...inner, isBlock: true, isWritten: description.includes('"'), depth: walk.around.length };
  }
  const isAdded = addLine(walk, element, `${description}${tail}`);
  if (canAct && isAdded && options.isTentative) walk.found.set(walk.lines.length - 1, { element, description: known });
  // A search does not update the descriptions of elements that it does not return.
  else if (canAct && (isAdded || walk.find === "")) numberOf(kept, element, known);
  if (isField) return undefined;
  const isShort = () => roles.contentOf(element, roles.longestName).length < roles.longestName;
  return { ...inner, isWritten: isContainer ? description.includes('"') : isShort(), isInActive: !isContainer };
}

/** Whether an element probably has a listener only for the events of its parts. Judged by its parts and its size. */
function isDelegate({ hasActive, items: parts }: items.Inside, { width, height }: DOMRect): boolean {
  const share = (width * height) / (innerWidth * innerHeight);
  return parts.size > 0 || share > (hasActive ? 0.25 : 0.5);
}

/** Whether the text of a label is already part of the line of its field. */
function isWrittenByField(walk: ElementLines, visit: VisitState, element: Element): boolean {
  if (!(element instanceof HTMLLabelElement) || walk.find !== "") return false;
  const { control } = element;
  if (!control || (walk.isInView && !clips.meets(visibility.boxOf(control), visit.clip))) return false;
  const text = roles.contentOf(element, 160);
  return text.length < 160 && roles.describe(control).includes(quote(text, 160));
}

/**
 * Returns why an element counts as interactive: by its own markup (`own`), by its cursor or surroundings (`implied`),
 * or only because it has a listener (`listens`). Undefined if the element is not interactive.
 */
function interactivityOf(
  visit: VisitState,
  inner: VisitState,
  element: Element,
  role: string,
): "own" | "implied" | "listens" | undefined {
  if (element instanceof HTMLLabelElement) {
    const { control } = element;
    if (!control || visibility.isDisabled(control)) return undefined;
    // If the page hides a control and draws a replacement, the label is listed instead of the control.
    const isDrawnHere = clips.meets(visibility.boxOf(element), visit.clip);
    return (isDrawnHere ? !clips.isHit(control, true) : !clips.isDrawn(control)) ? "own" : undefined;
  }
  if (roles.isActive(element, role) || role === "canvas" || role === "chart") return "own";
  if (clips.isRoot(element)) return undefined;
  const isFirst = (inner.isPointer && !visit.isPointer) || (inner.isGrab && !visit.isGrab);
  if (isFirst && !visit.isInActive) return "implied";
  if (visit.items.has(element) || roles.isGridCell(element, role) || items.isDraggable(element)) return "implied";
  return items.listens(element) ? "listens" : undefined;
}

/**
 * Whether a person can click an element. Outside of the pass over the content in view (`isInView`), an element that
 * needs scrolling also counts.
 */
function isWithinReach(walk: ElementLines, visit: VisitState, element: Element, box: DOMRect): boolean {
  if (clips.meets(box, visit.clip) && clips.isHit(element, false)) return true;
  if (walk.isInView) return false;
  // Scrolling does not uncover an element that is fully in view.
  const isFarOff = !clips.contains(clips.viewportClip(), box) || !clips.contains(visit.clip, box);
  return isFarOff && clips.meets(box, visit.edge) && clips.isDrawn(element);
}

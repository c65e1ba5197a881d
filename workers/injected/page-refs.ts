import { describe } from "./page-role.ts";
import { allMatches, findFirst } from "./page-visibility.ts";
import { quote } from "./plain-text.ts";

/** Reference to an element: its number, and the epoch (number) of its document. */
export interface Ref {
  readonly epoch: number;
  readonly number: number;
}

/** Identifies an element: a selector or a reference. */
export type Named = string | Ref;

/** State of a document that is kept across snapshots. */
export interface Kept {
  readonly epoch: number;
  /** Number of snapshots so far, without searches and repeated snapshots (`isAgain`). */
  snapshots: number;
  /** Highest number of an element so far. */
  last: number;
  readonly elements: Map<number, WeakRef<Element>>;
  readonly given: WeakMap<Element, Given>;
  readonly shown: WeakMap<Node, Shown>;
}

/** Number of an element, and its description in the last snapshot that contained the element. */
interface Given {
  readonly number: number;
  description: string;
}

/** Line of a node in the last snapshot that contained the node, and the node's earlier line, if any. */
interface Shown {
  readonly snapshot: number;
  readonly body: string;
  readonly before: string | undefined;
}

let state: Kept | undefined;

/** Returns the state kept for this document. Only the first call sets the document's number. */
export function keep(epoch: number): Kept {
  state ??= { epoch, snapshots: 0, last: 0, elements: new Map(), given: new WeakMap(), shown: new WeakMap() };
  return state;
}

/** Returns the number of an element, or the next free number without assigning it. */
export function numberFor(kept: Kept, element: Element): number {
  return kept.given.get(element)?.number ?? kept.last + 1;
}

/** Returns the number of an element, which is assigned if necessary, and records its description. */
export function numberOf(kept: Kept, element: Element, description: string): number {
  const known = kept.given.get(element);
  if (known) {
    known.description = description;
    return known.number;
  }
  kept.last = numberFor(kept, element);
  kept.given.set(element, { number: kept.last, description });
  kept.elements.set(kept.last, new WeakRef(element));
  // Bounds the memory for pages that create elements without end.
  if (kept.elements.size > 20_000) for (const [oldest] of kept.elements.entries().take(1)) kept.elements.delete(oldest);
  return kept.last;
}

/**
 * Records the line of a node. Returns whether the line differs from the node's previous line. Returns false in the
 * first snapshot. A repeated snapshot (`isAgain`) replaces the snapshot before.
 */
export function recordLine(kept: Kept, node: Node, body: string): boolean {
  const last = kept.shown.get(node);
  const before = last?.snapshot === kept.snapshots ? last.before : last?.body;
  kept.shown.set(node, { snapshot: kept.snapshots, body, before });
  return kept.snapshots > 1 && before !== body;
}

/** Returns the element of a reference, or all matches of a selector. */
export function* allNamed(named: Named): Generator<Element> {
  if (typeof named === "string") return yield* allMatches(named);
  const element = elementOf(named);
  if (element) yield element;
}

/** Returns the element of a reference, or the first visible match of a selector, else the first match. */
export function firstNamed(named: Named): Element | undefined {
  return typeof named === "string" ? findFirst(named) : elementOf(named);
}

/** Returns the element of a reference. Undefined once the element has left the document. */
export function elementOf({ epoch, number }: Ref): Element | undefined {
  const element = state?.epoch === epoch ? state.elements.get(number)?.deref() : undefined;
  return element?.isConnected ? element : undefined;
}

/** Returns why a reference is stale. Undefined for a valid reference or a selector. */
export function staleness(ref: Named): string | undefined {
  if (typeof ref === "string") return undefined;
  if (state?.epoch !== ref.epoch) return `belongs to an earlier document: ${quote(location.href, 300)} is shown now`;
  if (ref.number > state.last) return "is unknown: no snapshot returned it";
  const element = elementOf(ref);
  if (!element) return "is gone from the page";
  const description = state.given.get(element)?.description ?? "";
  const now = description === "" ? "" : describe(element);
  return now === description ? undefined : `was ${description} and is ${now} now`;
}

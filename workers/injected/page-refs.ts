/*
 * References to elements. These functions run in the page together with the modules declared below; `page-script.ts`
 * sends their source there.
 */

declare const roles: typeof import("./page-role.ts");
declare const state: { kept: Kept | undefined };

/** A numbered element of a numbered document. */
export interface Ref {
  readonly epoch: number;
  readonly number: number;
}

/** Identifies an element: a selector or a reference. */
export type Named = string | Ref;

/** State kept across snapshots of a document. */
interface Kept {
  readonly epoch: number;
  /** Number of snapshots so far. */
  looks: number;
  last: number;
  readonly elements: Map<number, WeakRef<Element>>;
  readonly given: WeakMap<Element, Given>;
  readonly shown: WeakMap<Node, Shown>;
}

/** Number and last description of an element. */
interface Given {
  readonly number: number;
  told: string;
}

/** Text of a node in the last snapshot and in the one before. */
interface Shown {
  readonly look: number;
  readonly body: string;
  readonly before: string | undefined;
}

/** Returns the state kept for this document, which keeps its first number. */
export function keep(epoch: number): Kept {
  state.kept ??= { epoch, looks: 0, last: 0, elements: new Map(), given: new WeakMap(), shown: new WeakMap() };
  return state.kept;
}

/** Returns the number of an element, or the next free one. */
export function numberFor(kept: Kept, element: Element): number {
  return kept.given.get(element)?.number ?? kept.last + 1;
}

/** Returns the unique number of an element and records its description. */
export function numberOf(kept: Kept, element: Element, told: string): number {
  const known = kept.given.get(element);
  if (known) {
    known.told = told;
    return known.number;
  }
  kept.last = numberFor(kept, element);
  kept.given.set(element, { number: kept.last, told });
  kept.elements.set(kept.last, new WeakRef(element));
  // Bounds the memory for pages that create elements without end.
  if (kept.elements.size > 20_000) for (const [oldest] of kept.elements.entries().take(1)) kept.elements.delete(oldest);
  return kept.last;
}

/** Whether a line differs from the node's line in the previous snapshot. A repeated snapshot counts as the same one. */
export function isNews(kept: Kept, node: Node, body: string): boolean {
  const last = kept.shown.get(node);
  const before = last?.look === kept.looks ? last.before : last?.body;
  kept.shown.set(node, { look: kept.looks, body, before });
  return kept.looks > 1 && before !== body;
}

/** Returns the element of a reference. Undefined once it has left the document. */
export function elementOf({ epoch, number }: Ref): Element | undefined {
  const element = state.kept?.epoch === epoch ? state.kept.elements.get(number)?.deref() : undefined;
  return element?.isConnected ? element : undefined;
}

/** Returns why a reference is stale, or undefined if it is valid. */
export function staleness(ref: Ref): string | undefined {
  const { kept } = state;
  if (kept?.epoch !== ref.epoch)
    return `belongs to an earlier document: ${roles.quote(location.href, 300)} is shown now`;
  if (ref.number > kept.last) return "is unknown: no snapshot returned it";
  const element = elementOf(ref);
  if (!element) return "is gone from the page";
  const told = kept.given.get(element)?.told ?? "";
  const now = told === "" ? "" : roles.tell(element);
  return now === told ? undefined : `was ${told} and is ${now} now`;
}

/** Returns the element of a reference. */
export function elementFor(ref: Ref): Element | null {
  return elementOf(ref) ?? null;
}

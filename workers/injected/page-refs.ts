/*
 * References to elements. These functions run in the page, beside those of the files declared here: `page-script.ts` sends
 * their source there.
 */

declare const roles: typeof import("./page-role.ts");
declare const state: { kept: Kept | undefined };

/** An element that a look has given a number, in a document that a look has given one. */
export interface Ref {
  readonly epoch: number;
  readonly number: number;
}

/** What names an element: a selector, or a reference. */
export type Named = string | Ref;

/** What is remembered of the looks at a document. */
interface Kept {
  readonly epoch: number;
  /** Counts the looks. */
  looks: number;
  last: number;
  readonly elements: Map<number, WeakRef<Element>>;
  readonly given: WeakMap<Element, Given>;
  readonly shown: WeakMap<Node, Shown>;
}

/** The number of an element, and what it was said to be. */
interface Given {
  readonly number: number;
  told: string;
}

/** What a look, the last one and the one before have shown of a node. */
interface Shown {
  readonly look: number;
  readonly body: string;
  readonly before: string | undefined;
}

/** What is remembered of the looks at this document; it keeps the number that it was given first. */
export function keep(epoch: number): Kept {
  state.kept ??= { epoch, looks: 0, last: 0, elements: new Map(), given: new WeakMap(), shown: new WeakMap() };
  return state.kept;
}

/** The number that an element has, or is the next to get. */
export function numberFor(kept: Kept, element: Element): number {
  return kept.given.get(element)?.number ?? kept.last + 1;
}

/** The number of an element, which is no other's; and it is taken to be what it is said to be. */
export function numberOf(kept: Kept, element: Element, told: string): number {
  const known = kept.given.get(element);
  if (known) {
    known.told = told;
    return known.number;
  }
  kept.last = numberFor(kept, element);
  kept.given.set(element, { number: kept.last, told });
  kept.elements.set(kept.last, new WeakRef(element));
  // A page that makes elements without end is not followed without end.
  if (kept.elements.size > 20_000) for (const [oldest] of kept.elements.entries().take(1)) kept.elements.delete(oldest);
  return kept.last;
}

/** Whether a line is not what the look before has shown of its node; a look that is repeated is still the same one. */
export function isNews(kept: Kept, node: Node, body: string): boolean {
  const last = kept.shown.get(node);
  const before = last?.look === kept.looks ? last.before : last?.body;
  kept.shown.set(node, { look: kept.looks, body, before });
  return kept.looks > 1 && before !== body;
}

/** The element that a reference is to; undefined once it has left the document. */
export function elementOf({ epoch, number }: Ref): Element | undefined {
  const element = state.kept?.epoch === epoch ? state.kept.elements.get(number)?.deref() : undefined;
  return element?.isConnected ? element : undefined;
}

/** What has become of a reference that is not to be used any more; undefined while it is good. */
export function staleness(ref: Ref): string | undefined {
  const { kept } = state;
  if (kept?.epoch !== ref.epoch) return `is of an earlier document: ${roles.quote(location.href, 300)} is shown now`;
  if (ref.number > kept.last) return "was given by no look";
  const element = elementOf(ref);
  if (!element) return "is gone from the page";
  const told = kept.given.get(element)?.told ?? "";
  const now = told === "" ? "" : roles.tell(element);
  return now === told ? undefined : `was ${told} and is ${now} now`;
}

/** The element of a reference. */
export function elementFor(ref: Ref): Element | null {
  return elementOf(ref) ?? null;
}

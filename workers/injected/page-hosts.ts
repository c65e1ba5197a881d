import { tagOf } from "./page-role.ts";
import * as visibility from "./page-visibility.ts";

/** Elements for which the worker has already queried the browser for a closed shadow root. */
const known = new WeakSet<Element>();
let doubtful: readonly Element[] = [];

/**
 * Whether an element may have an unknown closed shadow root: it is a custom element, or has an area although it has no
 * child or its first child is not rendered.
 */
export function isDoubtful(element: Element, box: DOMRect): boolean {
  if (known.has(element) || visibility.shadowOf(element)) return false;
  const tag = tagOf(element);
  const isOwn = tag.includes("-");
  const isPlain = /^(?:article|aside|blockquote|div|footer|h[1-6]|header|main|nav|p|section|span)$/.test(tag);
  return isOwn || (isPlain && box.width * box.height > 0 && showsNothing(element));
}

/**
 * Same as `isDoubtful`, but cheaper, for every element of a document. Text in an element without child elements counts
 * as rendered, because checking the text's boxes would take too long.
 */
export function isDoubtfulAside(element: Element): boolean {
  if (!tagOf(element).includes("-")) {
    const child = visibility.read(Element.prototype, "firstElementChild", element);
    if (child && Element.prototype.checkVisibility.call(child)) return false;
    if (!child && /\S/.test(visibility.read(Node.prototype, "textContent", element) ?? "")) return false;
  }
  return isDoubtful(element, visibility.boxOf(element));
}

/** Whether an element has no child, or its first child is not rendered. */
function showsNothing(element: Element): boolean {
  const child = visibility.read(Node.prototype, "firstChild", element);
  if (!child) return true;
  if (child instanceof Element) return getComputedStyle(child).display === "";
  return !(child instanceof Text) || visibility.boxesOf(child).length === 0;
}

export function keepDoubtful(elements: readonly Element[]): void {
  doubtful = elements;
}

/** Returns and clears the doubtful elements of the last snapshot. */
export function doubtfulElements(): readonly Element[] {
  const found = doubtful;
  doubtful = [];
  // Only defined elements are recorded: a custom element that is not defined yet may get a shadow root later.
  for (const element of found) if (Element.prototype.matches.call(element, ":defined")) known.add(element);
  return found;
}

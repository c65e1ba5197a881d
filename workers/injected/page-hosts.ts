import { tagOf } from "./page-role.ts";
import * as visibility from "./page-visibility.ts";

/** Elements that the browser was asked about for a closed shadow root. */
const known = new WeakSet<Element>();
let doubtful: readonly Element[] = [];

/**
 * Whether an element may have an unknown closed shadow root: a custom element, or an element that shows more than its
 * own children.
 */
export function isDoubtful(element: Element, box: DOMRect): boolean {
  if (known.has(element) || visibility.shadowOf(element)) return false;
  const tag = tagOf(element);
  const isOwn = tag.includes("-");
  const isPlain = /^(?:article|aside|blockquote|div|footer|h[1-6]|header|main|nav|p|section|span)$/.test(tag);
  return isOwn || (isPlain && box.width * box.height > 0 && showsNothing(element));
}

/**
 * Same as `isDoubtful` for elements that a search skips. Text inside an element counts as shown: checking its
 * visibility would take too long.
 */
export function isDoubtfulAside(element: Element): boolean {
  if (!tagOf(element).includes("-")) {
    const child = visibility.read(Element.prototype, "firstElementChild", element);
    if (child && Element.prototype.checkVisibility.call(child)) return false;
    if (!child && /\S/.test(visibility.read(Node.prototype, "textContent", element) ?? "")) return false;
  }
  return isDoubtful(element, visibility.boxOf(element));
}

/** Whether none of an element's own children is shown. */
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
  const asked = doubtful;
  doubtful = [];
  // Only defined elements are recorded: a custom element that is not defined yet may get a shadow root later.
  for (const element of asked) if (Element.prototype.matches.call(element, ":defined")) known.add(element);
  return asked;
}

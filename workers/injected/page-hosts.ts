/*
 * Closed shadow roots, which only the browser can reveal. These functions run in the page together with the modules
 * declared below; `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const roles: typeof import("./page-role.ts");
declare const state: {
  closed: WeakMap<Element, ShadowRoot> | undefined;
  /** Elements that the browser was asked about. */
  known: WeakSet<Element> | undefined;
  doubtful: readonly Element[] | undefined;
};

/**
 * Whether an element may have an unknown closed shadow root: a custom element, or one that shows more than its own
 * children.
 */
export function isDoubtful(element: Element, box: DOMRect): boolean {
  state.known ??= new WeakSet();
  if (state.known.has(element) || sight.shadowOf(element)) return false;
  const tag = roles.tagOf(element);
  const isOwn = tag.includes("-");
  const isPlain = /^(?:article|aside|blockquote|div|footer|h[1-6]|header|main|nav|p|section|span)$/.test(tag);
  return isOwn || (isPlain && box.width * box.height > 0 && showsNothing(element));
}

/**
 * Same as `isDoubtful` for elements that a search skips. Text inside an element counts as shown: checking it would take
 * too long.
 */
export function isDoubtfulAside(element: Element): boolean {
  if (!roles.tagOf(element).includes("-")) {
    const child = sight.read(Element.prototype, "firstElementChild", element);
    if (child && Element.prototype.checkVisibility.call(child)) return false;
    if (!child && /\S/.test(sight.read(Node.prototype, "textContent", element) ?? "")) return false;
  }
  return isDoubtful(element, sight.boxOf(element));
}

/** Whether none of an element's own children is shown. */
export function showsNothing(element: Element): boolean {
  const child = sight.read(Node.prototype, "firstChild", element);
  if (!child) return true;
  if (child instanceof Element) return getComputedStyle(child).display === "";
  return !(child instanceof Text) || sight.boxesOf(child).length === 0;
}

/** Returns and clears the doubtful elements of the last snapshot. */
export function doubtfulElements(): readonly Element[] {
  const doubtful = state.doubtful ?? [];
  state.doubtful = [];
  // A custom element that is not defined yet may get a shadow root later.
  for (const element of doubtful) if (Element.prototype.matches.call(element, ":defined")) state.known?.add(element);
  return doubtful;
}

/** Registers a closed shadow root, which later snapshots include. */
export function keepClosed(host: Element, root: ShadowRoot): void {
  state.closed ??= new WeakMap();
  state.closed.set(host, root);
}

/*
 * The closed shadow roots of a document, which only the browser tells of. These functions run in the page, beside those of
 * the files declared here: `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const roles: typeof import("./page-role.ts");
declare const state: {
  closed: WeakMap<Element, ShadowRoot> | undefined;
  /** Elements of which the browser was asked. */
  known: WeakSet<Element> | undefined;
  doubtful: readonly Element[] | undefined;
};

/** Whether an element may have a closed shadow root that is not known: by its name, or since it shows more than is in it. */
export function isDoubtful(element: Element, box: DOMRect): boolean {
  state.known ??= new WeakSet();
  if (state.known.has(element) || sight.shadowOf(element)) return false;
  const tag = roles.tagOf(element);
  const isOwn = tag.includes("-");
  const isPlain = /^(?:article|aside|blockquote|div|footer|h[1-6]|header|main|nav|p|section|span)$/.test(tag);
  return isOwn || (isPlain && box.width * box.height > 0 && showsNothing(element));
}

/** The same of what a search passes by, where a text that is in an element is taken to be shown: asking that takes long. */
export function isDoubtfulAside(element: Element): boolean {
  if (!roles.tagOf(element).includes("-")) {
    const child = sight.read(Element.prototype, "firstElementChild", element);
    if (child && Element.prototype.checkVisibility.call(child)) return false;
    if (!child && /\S/.test(sight.read(Node.prototype, "textContent", element) ?? "")) return false;
  }
  return isDoubtful(element, sight.boxOf(element));
}

/** Whether nothing of what is in an element is shown. */
export function showsNothing(element: Element): boolean {
  const child = sight.read(Node.prototype, "firstChild", element);
  if (!child) return true;
  if (child instanceof Element) return getComputedStyle(child).display === "";
  return !(child instanceof Text) || sight.boxesOf(child).length === 0;
}

/** The elements that the last look has doubts about. */
export function doubtfulElements(): readonly Element[] {
  const doubtful = state.doubtful ?? [];
  state.doubtful = [];
  // One whose definition is yet to come may get a shadow root with it.
  for (const element of doubtful) if (Element.prototype.matches.call(element, ":defined")) state.known?.add(element);
  return doubtful;
}

/** Looks into a closed shadow root from now on. */
export function keepClosed(host: Element, root: ShadowRoot): void {
  state.closed ??= new WeakMap();
  state.closed.set(host, root);
}

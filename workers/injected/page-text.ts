import * as visibility from "./page-visibility.ts";
import { plain } from "./plain-text.ts";

/**
 * Returns up to `max` visible elements that contain a text: for each occurrence, the innermost element. Ignores
 * case, and treats a run of white space as one space.
 */
export function findText(wanted: string, max: number): Element[] {
  const text = plain(wanted);
  const found: Element[] = [];
  for (const root of [document, ...visibility.shadowRoots()]) {
    for (const button of visibility.queryAll(root, "input[type=submit], input[type=button], input[type=reset]")) {
      if (button instanceof HTMLInputElement && plain(button.value).includes(text) && visibility.isVisible(button))
        found.push(button);
      if (found.length >= max) return found;
    }
    const pending = childrenWith(root, text);
    for (let element = pending.pop(); element; element = pending.pop()) {
      const inner = childrenWith(element, text);
      for (const child of inner) pending.push(child);
      if (inner.length === 0 && plain(wordsOf(element)).includes(text) && visibility.isVisible(element))
        found.push(element);
      if (found.length >= max) return found;
    }
  }
  return found;
}

/**
 * Returns the value of an input. For other elements, ascends until the text has at least 400 characters or the parent
 * has more than 32 child nodes, and returns the text, cut to 32,768 characters.
 */
export function wordsAround(element: Element): string {
  if (element instanceof HTMLInputElement) return element.value;
  let words = wordsOf(element);
  for (let at = visibility.parentOf(element); at && words.length < 400; at = visibility.parentOf(at)) {
    if (visibility.read(Node.prototype, "childNodes", at).length > 32) break;
    words = wordsOf(at);
  }
  return words.slice(0, 32_768);
}

/** Returns the child elements that contain a text. */
function childrenWith(node: Node, text: string): Element[] {
  const children: Element[] = [];
  for (const child of visibility.read(Node.prototype, "childNodes", node)) {
    if (!(child instanceof Element) || isSilent(child)) continue;
    if (plain(visibility.read(Node.prototype, "textContent", child) ?? "").includes(text)) children.push(child);
  }
  return children;
}

/** Returns the text in an element, without text directly in a silent element, such as a script. */
function wordsOf(element: Element): string {
  const walker = Document.prototype.createTreeWalker.call(document, element, NodeFilter.SHOW_TEXT);
  let words = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = visibility.parentOf(node);
    if (parent && !isSilent(parent)) words += visibility.read(Node.prototype, "textContent", node) ?? "";
  }
  return words;
}

const silent: ReadonlySet<string> = new Set(["head", "script", "noscript", "style", "template"]);

export function isSilent(element: Element): boolean {
  return silent.has(visibility.read(Element.prototype, "localName", element));
}

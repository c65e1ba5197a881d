import { isFrame } from "./page-guard.ts";
import { isDoubtfulAside } from "./page-hosts.ts";
import * as roles from "./page-role.ts";
import { isSilent } from "./page-text.ts";
import * as visibility from "./page-visibility.ts";

/* Finds elements that may contain a text, without computing styles and boxes, which would be slow. */

interface Search {
  readonly wanted: string;
  /** Elements that may contain the text, with their ancestors, and all frames. */
  readonly holders: Set<Element>;
  /** At most 64 elements that may have an unknown closed shadow root. */
  readonly doubtful: Element[];
}

/** An element being visited. */
interface Level {
  readonly element: Element;
  readonly nodes: ArrayLike<Node>;
  index: number;
}

/**
 * Searches the document. Returns undefined if the search has not ended at `endsAt`, or if the text contains `…` or
 * U+FFFD.
 */
export function search(find: string, endsAt: number): Search | undefined {
  // Snapshot lines may contain these characters where the document has others: at cuts, and for lone surrogates.
  if (/[…\ufffd]/.test(find)) return undefined;
  const found: Search = { wanted: bare(find), holders: new Set(), doubtful: [] };
  const path: Level[] = [];
  const enter = (element: Element) => {
    if (isSilent(element)) return;
    path.push({ element, nodes: roles.childrenOf(element), index: 0 });
    if (mayContain(found, element)) recordHolders(found, path);
    if (found.doubtful.length < 64 && isDoubtfulAside(element)) found.doubtful.push(element);
  };
  enter(document.documentElement);
  let visited = 0;
  for (let level = path.at(-1); level; level = path.at(-1)) {
    const node = level.nodes[level.index];
    level.index += 1;
    visited += 1;
    if (visited % 64 === 0 && performance.now() > endsAt) return undefined;
    if (node instanceof Text) {
      if (mayBegin(found.wanted, node.data)) recordHolders(found, path);
    } else if (node instanceof Element) enter(node);
    else if (!node) path.pop();
  }
  return found;
}

/** Whether an element's attributes, value or frame may contain the text. */
function mayContain({ wanted }: Search, element: Element): boolean {
  if (isFrame(element)) return true;
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    const { type, value } = element;
    const isReadable = !/^(?:checkbox|radio|hidden|image|password)$/.test(type);
    const standard = type === "submit" ? "Submit" : type === "reset" ? "Reset" : "";
    if (type === "file" || (isReadable && mayBegin(wanted, value)) || mayBegin(wanted, standard)) return true;
  }
  if (!Element.prototype.hasAttributes.call(element)) return false;
  const names = ["aria-label", "alt", "placeholder", "title", "label"];
  if (names.some((name) => mayBegin(wanted, roles.attribute(element, name, 4_000)))) return true;
  return Element.prototype.hasAttribute.call(element, "aria-labelledby");
}

/** Records an element and its ancestors. Fields and their labels are recorded together. */
function recordHolders({ holders }: Search, path: readonly Level[]): void {
  const recordAncestors = (element: Element | null) => {
    for (let at = element ?? undefined; at && !holders.has(at); at = visibility.shownIn(at)) holders.add(at);
  };
  for (let at = path.length - 1; at >= 0; at -= 1) {
    const { element } = path[at] ?? {};
    if (!element || holders.has(element)) break;
    holders.add(element);
    if (element instanceof HTMLLabelElement) recordAncestors(element.control);
    else if ("labels" in element && element.labels instanceof NodeList) {
      for (const label of element.labels) if (label instanceof Element) recordAncestors(label);
    }
  }
}

/** Whether a text contains `wanted`, or ends with a prefix of `wanted` that the next text may continue. */
function mayBegin(wanted: string, text: string): boolean {
  const written = bare(text.slice(0, 4_000));
  if (written === "") return false;
  if (written.includes(wanted)) return true;
  const last = written.at(-1) ?? "";
  for (let end = wanted.indexOf(last); end >= 0; end = wanted.indexOf(last, end + 1)) {
    if (written.endsWith(wanted.slice(0, end + 1))) return true;
  }
  return false;
}

/** Returns a text in lower case, without white space, control and format characters. `ς` becomes `σ`. */
function bare(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, "")
    .replaceAll("ς", "σ");
}

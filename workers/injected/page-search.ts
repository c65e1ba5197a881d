/*
 * Where in a document a text may be said, by what is written there alone: a search goes through nothing else, since it is
 * styles and boxes that take a look its time. These functions run in the page, beside those of the files declared here:
 * `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const roles: typeof import("./page-role.ts");
declare const texts: typeof import("./page-text.ts");
declare const guards: typeof import("./page-guard.ts");
declare const hosts: typeof import("./page-hosts.ts");

/** What a search has come upon. */
interface Search {
  readonly wanted: string;
  /** What may say the text, with all that it is shown in; and frames, whose documents may. */
  readonly holders: Set<Element>;
  /** What may have a closed shadow root that is not known. */
  readonly doubtful: Element[];
}

/** An element that is gone through. */
interface Level {
  readonly element: Element;
  readonly nodes: ArrayLike<Node>;
  index: number;
}

/** Searches the document; undefined where that takes too long. */
export function search(find: string, endsAt: number): Search | undefined {
  // What our own signs of a cut stand for is written nowhere.
  if (/[…\ufffd]/.test(find)) return undefined;
  const found: Search = { wanted: bare(find), holders: new Set(), doubtful: [] };
  const path: Level[] = [];
  const enter = (element: Element) => {
    if (texts.isSilent(element)) return;
    path.push({ element, nodes: roles.childrenOf(element), index: 0 });
    if (mayName(found, element)) hold(found, path);
    if (found.doubtful.length < 64 && hosts.isDoubtfulAside(element)) found.doubtful.push(element);
  };
  enter(document.documentElement);
  let visited = 0;
  for (let level = path.at(-1); level; level = path.at(-1)) {
    const node = level.nodes[level.index];
    level.index += 1;
    visited += 1;
    if (visited % 64 === 0 && performance.now() > endsAt) return undefined;
    if (node instanceof Text) {
      if (mayBegin(found.wanted, node.data)) hold(found, path);
    } else if (node instanceof Element) enter(node);
    else if (!node) path.pop();
  }
  return found;
}

/** Whether an element may say the text that is wanted by more than what is written in it. */
export function mayName({ wanted }: Search, element: Element): boolean {
  if (guards.isFrame(element)) return true;
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    const { type, value } = element;
    const isTold = !/^(?:checkbox|radio|hidden|image|password)$/.test(type);
    const standard = type === "submit" ? "Submit" : type === "reset" ? "Reset" : "";
    if (type === "file" || (isTold && mayBegin(wanted, value)) || mayBegin(wanted, standard)) return true;
  }
  if (!Element.prototype.hasAttributes.call(element)) return false;
  const names = ["aria-label", "alt", "placeholder", "title", "label"];
  if (names.some((name) => mayBegin(wanted, roles.attribute(element, name, 4_000)))) return true;
  return Element.prototype.hasAttribute.call(element, "aria-labelledby");
}

/** Takes note of an element and of what it is in; a field and its label say the same, wherever they are. */
export function hold({ holders }: Search, path: readonly Level[]): void {
  const holdAlone = (element: Element | null) => {
    for (let at = element ?? undefined; at && !holders.has(at); at = sight.shownIn(at)) holders.add(at);
  };
  for (let at = path.length - 1; at >= 0; at -= 1) {
    const { element } = path[at] ?? {};
    if (!element || holders.has(element)) break;
    holders.add(element);
    if (element instanceof HTMLLabelElement) holdAlone(element.control);
    else if ("labels" in element && element.labels instanceof NodeList) {
      for (const label of element.labels) if (label instanceof Element) holdAlone(label);
    }
  }
}

/** Whether a text holds what is wanted, or ends with what that begins with: the next one may go on with it. */
export function mayBegin(wanted: string, text: string): boolean {
  const written = bare(text.slice(0, 4_000));
  if (written === "") return false;
  if (written.includes(wanted)) return true;
  const last = written.at(-1) ?? "";
  for (let end = wanted.indexOf(last); end >= 0; end = wanted.indexOf(last, end + 1)) {
    if (written.endsWith(wanted.slice(0, end + 1))) return true;
  }
  return false;
}

/** A text without white space and case, whatever is written beside it: a sigma at the end of a word is written otherwise. */
export function bare(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, "")
    .replaceAll("ς", "σ");
}

import { keepFrames } from "./page-dom.ts";
import { isDoubtfulAside, keepDoubtful } from "./page-hosts.ts";
import * as roles from "./page-role.ts";
import * as visibility from "./page-visibility.ts";

/* Rewrites the visible content as plain HTML, from which nothing can address or run code: no scripts, forms or names. */

export interface ContentOptions {
  /** Names the frames of this content for `contentHolder`. */
  readonly token: string;
  /** Characters after which reading stops. */
  readonly limit: number;
  readonly timeMs: number;
}

export interface PageContent {
  /** Markup and texts in turn, separated by `partMark`. Texts are those of the page, and are not escaped. */
  readonly parts: string;
  readonly frames: number;
  /** Whether the limit or the time did not suffice. */
  readonly isCut: boolean;
  /** Number of elements that may have an unknown closed shadow root. */
  readonly doubtful: number;
  readonly url: string;
}

/** Separates parts. Texts of pages lose this character. */
const partMark = "\u0001";

/** Characters that HTML does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]/g;

/** Elements that are written under their own name. All others become `div` or `span`, as they are displayed. */
const kept = new Set(
  (
    "a abbr address article aside b blockquote br caption cite code col colgroup dd del dfn dl dt em figcaption figure " +
    "footer h1 h2 h3 h4 h5 h6 header hr i ins kbd li main mark nav ol p pre q s samp section small strong sub sup " +
    "table tbody td tfoot th thead time tr u ul var wbr math mi mn mo ms mtext mspace mrow mfrac msqrt mroot msup msub " +
    "msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd menclose mpadded mstyle semantics"
  ).split(" "),
);
const empty = new Set(["br", "hr", "col", "wbr"]);
const skipped = new Set(
  "head script noscript style template svg canvas audio video map datalist annotation annotation-xml".split(" "),
);
const frameTags = new Set(["iframe", "frame", "object", "embed", "fencedframe"]);
const fieldTags = new Set(["input", "select", "textarea"]);

const alsoHidden = { visibilityProperty: true };

/** Attributes that are copied, with their longest value. */
const copied: Readonly<Record<string, number>> = {
  ...{ id: 200, class: 200, role: 40, lang: 40, dir: 8, title: 400, colspan: 4, rowspan: 4, start: 10, value: 10 },
  ...{ scope: 20, datetime: 40, "data-lang": 40, "data-language": 40, "aria-label": 400, display: 10, mathvariant: 20 },
};

/** An element being written. */
interface Level {
  /** Next child to write, if the children are siblings. */
  next: Node | null;
  /** Nodes that a slot shows instead of its children. */
  readonly slotted: readonly Node[];
  index: number;
  readonly close: string;
  readonly isHidden: boolean;
  readonly isPre: boolean;
}

/** Getters of nodes' members, which take half the time of `read`. */
type Getters = ReturnType<typeof findGetters>;

interface Writer {
  readonly get: Getters;
  readonly base: string;
  readonly token: string;
  readonly parts: string[];
  readonly frames: Element[];
  readonly doubtful: Element[];
  length: number;
  isText: boolean;
}

/** Returns the visible content of the document. */
export const documentContent = (options: ContentOptions): PageContent =>
  serializeContent(visibility.read(Document.prototype, "documentElement", document), options);

/** Returns the visible content of an element. */
export function serializeContent(
  root: Element | null | undefined,
  { token, limit, timeMs }: ContentOptions,
): PageContent {
  const base = visibility.read(Node.prototype, "baseURI", document);
  const get = findGetters();
  const writer: Writer = { get, base, token, parts: [], frames: [], doubtful: [], length: 0, isText: false };
  const endsAt = performance.now() + timeMs;
  const levels: Level[] = [];
  const start = root && open(writer, root, false);
  if (start) levels.push(start);
  let isCut = false;
  for (let visited = 1, level = levels.at(-1); level; visited += 1, level = levels.at(-1)) {
    isCut = writer.length > limit || (visited % 64 === 0 && performance.now() > endsAt);
    if (isCut) break;
    const node = nextOf(level, get);
    const type = node && get.nodeType(node);
    if (!node) {
      write(writer, level.close, false);
      levels.pop();
    } else if (type === 1) {
      // Casts: nodes of type 1 are elements, nodes of types 3 and 4 are texts. `instanceof` takes longer.
      const inner = open(writer, node as Element, level.isPre);
      if (inner) levels.push(inner);
    } else if ((type === 3 || type === 4) && !level.isHidden) write(writer, get.data(node as Text), true);
  }
  keepFrames(token, writer.frames);
  keepDoubtful(writer.doubtful);
  const { frames, doubtful, parts } = writer;
  const url = visibility.read(Document.prototype, "URL", document);
  return { parts: isCut ? "" : parts.join(""), frames: frames.length, isCut, doubtful: doubtful.length, url };
}

function findGetters() {
  const getter = <Prototype extends object, Key extends keyof Prototype>(prototype: Prototype, key: Key) => {
    const get = Object.getOwnPropertyDescriptor(prototype, key)?.get ?? (() => undefined);
    // The boundary where the member gets its type.
    return Function.prototype.call.bind(get) as (node: Prototype) => Prototype[Key];
  };
  return {
    nodeType: getter(Node.prototype, "nodeType"),
    firstChild: getter(Node.prototype, "firstChild"),
    nextSibling: getter(Node.prototype, "nextSibling"),
    localName: getter(Element.prototype, "localName"),
    attributes: getter(Element.prototype, "attributes"),
    data: getter(CharacterData.prototype, "data"),
  };
}

/** Returns the next node inside of an element. */
function nextOf(level: Level, get: Getters): Node | null | undefined {
  if (level.slotted.length > 0) {
    level.index += 1;
    return level.slotted[level.index - 1];
  }
  const { next } = level;
  if (next) level.next = get.nextSibling(next);
  return next;
}

/** Adds markup, or a text of the page. */
function write(writer: Writer, written: string, isText: boolean): void {
  if (written === "") return;
  const text = isText ? written.replace(forbidden, "") : written;
  writer.length += text.length;
  if (writer.isText !== isText) writer.parts.push(partMark);
  writer.isText = isText;
  writer.parts.push(text);
}

/** Writes the start tag of an element. Returns its contents to write, or undefined if there are none. */
function open(writer: Writer, element: Element, isInPre: boolean): Level | undefined {
  const { get } = writer;
  const tag = get.localName(element);
  if (skipped.has(tag)) return undefined;
  // A computed style takes longer than this check.
  const isVisible = Element.prototype.checkVisibility.call(element, alsoHidden);
  if (!isVisible && !roles.isRendered(element)) return undefined;
  const isHidden = !isVisible && getComputedStyle(element).visibility !== "visible";
  if (frameTags.has(tag)) return void (isHidden || addFrame(writer, element));
  const mayHideRoot = tag.includes("-") || !get.firstChild(element);
  if (mayHideRoot && writer.doubtful.length < 64 && isDoubtfulAside(element)) writer.doubtful.push(element);
  if (fieldTags.has(tag) && addControl(writer, element, isHidden)) return undefined;
  if (tag === "img") return void (isHidden || addImage(writer, element));
  const name = kept.has(tag) ? tag : isInline(element, tag, isInPre) ? "span" : "div";
  write(writer, `<${name}`, false);
  copyAttributes(writer, element);
  if (name === "a") addAttribute(writer, "href", addressOf(writer, element, "href", /^(?:https?|mailto|tel):/));
  // The HTML parser drops the first line break of a `pre`.
  write(writer, name === "pre" ? ">\n" : ">", false);
  if (empty.has(name)) return undefined;
  const close = `</${name}>`;
  const next = get.firstChild(visibility.shadowOf(element) ?? element);
  const slotted = element instanceof HTMLSlotElement ? element.assignedNodes() : [];
  return { next, slotted, index: 0, close, isHidden, isPre: isInPre || name === "pre" };
}

const isInline = (element: Element, tag: string, isInPre: boolean): boolean =>
  isInPre ? tag !== "div" : /^(?:inline|contents)/.test(getComputedStyle(element).display);

function copyAttributes(writer: Writer, element: Element): void {
  if (!Element.prototype.hasAttributes.call(element)) return;
  for (const { name, value } of writer.get.attributes(element)) {
    const max = Object.hasOwn(copied, name) ? copied[name] : undefined;
    if (max !== undefined) addAttribute(writer, name, value.slice(0, max));
  }
}

function addAttribute(writer: Writer, name: string, value: string): void {
  if (value === "") return;
  write(writer, ` ${name}="`, false);
  write(writer, value, true);
  write(writer, '"', false);
}

/** Returns the absolute URL of an attribute. Empty if it has another scheme, or is too long to be useful. */
function addressOf({ base }: Writer, element: Element, name: string, schemes: RegExp): string {
  const written = roles.attribute(element, name, 4_000).trim();
  if (written === "" || written.startsWith("#")) return written;
  const url = URL.canParse(written, base) ? new URL(written, base).href : "";
  return schemes.test(url) && url.length <= 2_000 ? url : "";
}

function addImage(writer: Writer, element: Element): void {
  const alt = roles.attribute(element, "alt", 400);
  const src = addressOf(writer, element, "src", /^https?:/);
  if (src === "") {
    write(writer, alt, true);
    return;
  }
  write(writer, "<img", false);
  addAttribute(writer, "src", src);
  addAttribute(writer, "alt", alt);
  write(writer, ">", false);
}

/** Writes the value of a field. Returns whether the element is a field. */
function addControl(writer: Writer, element: Element, isHidden: boolean): boolean {
  const value = shownValue(element);
  if (value === undefined) return false;
  if (isHidden || value === "") return true;
  write(writer, "<span>", false);
  write(writer, value, true);
  write(writer, "</span>", false);
  return true;
}

/** Returns what a field shows. Undefined for other elements. */
function shownValue(element: Element): string | undefined {
  if (element instanceof HTMLTextAreaElement) return element.value;
  if (element instanceof HTMLSelectElement) return [...element.selectedOptions].map(({ label }) => label).join(", ");
  if (!(element instanceof HTMLInputElement)) return undefined;
  const { type, value, checked } = element;
  if (type === "checkbox" || type === "radio") return checked ? "[x]" : "[ ]";
  return /^(?:hidden|password|file|image)$/.test(type) ? "" : value;
}

/** Writes a mark that the content of the frame replaces. */
function addFrame(writer: Writer, element: Element): void {
  write(writer, `<div>${writer.token}${writer.frames.push(element) - 1};</div>`, false);
}

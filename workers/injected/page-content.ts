import { keepFrames } from "./page-dom.ts";
import { isDoubtfulAside, keepDoubtful } from "./page-hosts.ts";
import * as roles from "./page-role.ts";
import * as visibility from "./page-visibility.ts";

/* Rewrites the visible content as plain HTML without scripts, forms, event handlers and `name` attributes. */

export interface ContentOptions {
  /** Prefix of each frame's placeholder, and the key of the frames for `frameHolder`. */
  readonly token: string;
  /** Characters after which reading stops. */
  readonly limit: number;
  /** Milliseconds after which reading stops. */
  readonly timeMs: number;
}

export interface PageContent {
  /** Alternating markup and texts, separated by `partMark`. Texts are not escaped. Empty if `isCut`. */
  readonly parts: string;
  readonly frames: number;
  /** Whether the limit or the time did not suffice. */
  readonly isCut: boolean;
  /** Number of elements that may have an unknown closed shadow root. */
  readonly doubtful: number;
  readonly url: string;
}

/** Separator of parts. Texts of pages never contain the separator, because `joinParts` removes it. */
const partMark = "\u0001";

/** Characters that HTML does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]/g;

/** Elements that keep their name. Others become `div` or `span`, depending on their display. */
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
const fieldTags = new Set(["input", "select", "textarea"]);

/** Elements that may have a shadow root, as well as custom elements. */
const hostTags = /-|^(?:article|aside|blockquote|body|div|footer|h[1-6]|header|main|nav|p|section|span)$/;

/** Properties that depend only on the name of an element. */
interface TagTraits {
  readonly isSkipped: boolean;
  readonly isFrame: boolean;
  readonly isField: boolean;
  readonly isKept: boolean;
  readonly mayHost: boolean;
}

/** Traits by element name. One lookup replaces several tests, which are slow until V8 has compiled the code. */
const traits = new Map<string, TagTraits>();

function traitsOf(tag: string): TagTraits {
  const known = traits.get(tag);
  if (known) return known;
  const found = {
    isSkipped: skipped.has(tag),
    isFrame: visibility.frameTags.has(tag),
    isField: fieldTags.has(tag),
    isKept: kept.has(tag),
    mayHost: hostTags.test(tag),
  };
  traits.set(tag, found);
  return found;
}

const alsoHidden = { visibilityProperty: true };

/** Maximum length of each attribute that is copied. */
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

/** Getters of node properties, which take half the time of `visibility.read`. */
type Getters = ReturnType<typeof findGetters>;

interface Writer {
  readonly get: Getters;
  readonly base: string;
  readonly token: string;
  /** Alternating markup and texts. */
  readonly parts: string[];
  /** Markup since the last text. */
  markup: string;
  readonly frames: Element[];
  readonly doubtful: Element[];
  length: number;
}

/**
 * One item for each node that is written between two checks of the clock. Iterated by `some`, because V8 would spend
 * time to optimize a long loop while the loop runs.
 */
const batch = Array.from({ length: 64 });

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
  const writer: Writer = { get, base, token, parts: [], markup: "", frames: [], doubtful: [], length: 0 };
  const endsAt = performance.now() + timeMs;
  const levels: Level[] = [];
  const start = root && open(writer, root, false);
  if (start) levels.push(start);
  const writeNext = (): boolean => {
    const level = levels.at(-1);
    if (!level) return true;
    const node = nextOf(level, get);
    const type = node && get.nodeType(node);
    if (!node) {
      writer.markup += level.close;
      levels.pop();
    } else if (type === 1) {
      // Casts: nodes of type 1 are elements, and nodes of types 3 and 4 are texts. `instanceof` is slower.
      const inner = open(writer, node as Element, level.isPre);
      if (inner) levels.push(inner);
    } else if ((type === 3 || type === 4) && !level.isHidden) addText(writer, get.data(node as Text));
    return false;
  };
  const isTooLong = (): boolean => writer.length + writer.markup.length > limit;
  let isOver = false;
  while (!isOver) isOver = batch.some(writeNext) || isTooLong() || performance.now() > endsAt;
  const isCut = levels.length > 0 || isTooLong();
  if (writer.frames.length > 0) keepFrames(token, writer.frames);
  keepDoubtful(writer.doubtful);
  const { frames, doubtful, parts } = writer;
  const url = visibility.read(Document.prototype, "URL", document);
  return {
    parts: isCut ? "" : joinParts([...parts, writer.markup]),
    frames: frames.length,
    isCut,
    doubtful: doubtful.length,
    url,
  };
}

/**
 * Joins parts, and removes forbidden characters. If there are no forbidden characters, one search of the joined parts
 * is faster.
 */
function joinParts(parts: readonly string[]): string {
  const isClean = parts.join("").search(forbidden) < 0;
  return (isClean ? parts : parts.map((part) => part.replace(forbidden, ""))).join(partMark);
}

function findGetters() {
  const getter = <Prototype extends object, Key extends keyof Prototype>(prototype: Prototype, key: Key) => {
    const get = Object.getOwnPropertyDescriptor(prototype, key)?.get ?? (() => undefined);
    // Cast: the getter returns the property's type.
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

/** Adds the collected markup, and then a text of the page. */
function addText(writer: Writer, text: string): void {
  if (text === "") return;
  writer.length += writer.markup.length + text.length;
  writer.parts.push(writer.markup, text);
  writer.markup = "";
}

/**
 * Writes a simple element, such as an image or field, or the start tag of any other element. Returns the contents that
 * remain to be written, if any.
 */
function open(writer: Writer, element: Element, isInPre: boolean): Level | undefined {
  const { get } = writer;
  const tag = get.localName(element);
  const { isSkipped, isFrame, isField, isKept, mayHost } = traitsOf(tag);
  if (isSkipped) return undefined;
  // This check is faster than a computed style.
  const isVisible = Element.prototype.checkVisibility.call(element, alsoHidden);
  if (!isVisible && !roles.isRendered(element)) return undefined;
  const isHidden = !isVisible && getComputedStyle(element).visibility !== "visible";
  if (isFrame) return void (isHidden || addFrame(writer, element));
  const mayHideRoot = mayHost && (tag.includes("-") || !get.firstChild(element));
  if (mayHideRoot && writer.doubtful.length < 64 && isDoubtfulAside(element)) writer.doubtful.push(element);
  if (isField && addControl(writer, element, isHidden)) return undefined;
  if (tag === "img") return void (isHidden || addImage(writer, element));
  const name = isKept ? tag : isInline(element, tag, isInPre) ? "span" : "div";
  writer.markup += `<${name}`;
  copyAttributes(writer, element);
  if (name === "a") addAttribute(writer, "href", addressOf(writer, element, "href", /^(?:https?|mailto|tel):/));
  // The HTML parser drops the first line break of a `pre`.
  writer.markup += name === "pre" ? ">\n" : ">";
  if (empty.has(name)) return undefined;
  const close = `</${name}>`;
  const next = get.firstChild((mayHost && visibility.shadowOf(element)) || element);
  // An element with a single text needs no level.
  if (next && get.nodeType(next) === 3 && !get.nextSibling(next) && tag !== "slot") {
    if (!isHidden) addText(writer, get.data(next as Text));
    writer.markup += close;
    return undefined;
  }
  const slotted = tag === "slot" && element instanceof HTMLSlotElement ? element.assignedNodes() : [];
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
  writer.markup += ` ${name}="`;
  addText(writer, value);
  writer.markup += '"';
}

/**
 * Returns the absolute URL of an attribute. A fragment such as `#top` stays relative. Empty if `schemes` does not match
 * the URL, or the URL has more than 2,000 characters.
 */
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
    addText(writer, alt);
    return;
  }
  writer.markup += "<img";
  addAttribute(writer, "src", src);
  addAttribute(writer, "alt", alt);
  writer.markup += ">";
}

/** Writes the value of a field. Returns whether the element is a field. */
function addControl(writer: Writer, element: Element, isHidden: boolean): boolean {
  const value = shownValue(element);
  if (value === undefined) return false;
  if (isHidden || value === "") return true;
  writer.markup += "<span>";
  addText(writer, value);
  writer.markup += "</span>";
  return true;
}

/**
 * Returns the text that a field shows. Empty for hidden, password, file and image inputs. Undefined for other elements.
 */
function shownValue(element: Element): string | undefined {
  if (element instanceof HTMLTextAreaElement) return element.value;
  if (element instanceof HTMLSelectElement) return [...element.selectedOptions].map(({ label }) => label).join(", ");
  if (!(element instanceof HTMLInputElement)) return undefined;
  const { type, value, checked } = element;
  if (type === "checkbox" || type === "radio") return checked ? "[x]" : "[ ]";
  return /^(?:hidden|password|file|image)$/.test(type) ? "" : value;
}

/** Writes the placeholder of a frame. The worker replaces the placeholder with the frame's content. */
function addFrame(writer: Writer, element: Element): void {
  writer.markup += `<div>${writer.token}${writer.frames.push(element) - 1};</div>`;
}

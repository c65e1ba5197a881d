import { keepFrames } from "./page-dom.ts";
import { isFrame } from "./page-guard.ts";
import { isDoubtfulAside, keepDoubtful } from "./page-hosts.ts";
import * as roles from "./page-role.ts";
import { isSilent } from "./page-text.ts";
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
const empty = /^(?:br|hr|col|wbr)$/;
const skipped = /^(?:svg|canvas|audio|video|map|datalist|annotation|annotation-xml)$/;

/** Attributes that are copied, with their longest value. */
const copied: Readonly<Record<string, number>> = {
  ...{ id: 200, class: 200, role: 40, lang: 40, dir: 8, title: 400, colspan: 4, rowspan: 4, start: 10, value: 10 },
  ...{ scope: 20, datetime: 40, "data-lang": 40, "data-language": 40, "aria-label": 400, display: 10, mathvariant: 20 },
};

/** An element being written. */
interface Level {
  readonly nodes: ArrayLike<Node>;
  index: number;
  readonly close: string;
  readonly isHidden: boolean;
  readonly isPre: boolean;
}

interface Writer {
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
  const writer: Writer = { base, token, parts: [], frames: [], doubtful: [], length: 0, isText: false };
  const endsAt = performance.now() + timeMs;
  const levels: Level[] = [];
  const start = root && open(writer, root, false);
  if (start) levels.push(start);
  let isCut = false;
  for (let visited = 1, level = levels.at(-1); level; visited += 1, level = levels.at(-1)) {
    isCut = writer.length > limit || (visited % 64 === 0 && performance.now() > endsAt);
    if (isCut) break;
    const node = level.nodes[level.index];
    level.index += 1;
    if (node instanceof Text) {
      if (!level.isHidden) write(writer, visibility.read(CharacterData.prototype, "data", node), true);
    } else if (node instanceof Element) {
      const inner = open(writer, node, level.isPre);
      if (inner) levels.push(inner);
    } else if (!node) {
      write(writer, level.close, false);
      levels.pop();
    }
  }
  keepFrames(token, writer.frames);
  keepDoubtful(writer.doubtful);
  const { frames, doubtful, parts } = writer;
  const url = visibility.read(Document.prototype, "URL", document);
  return { parts: isCut ? "" : parts.join(""), frames: frames.length, isCut, doubtful: doubtful.length, url };
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
  const tag = roles.tagOf(element);
  if (isSilent(element) || skipped.test(tag) || !roles.isRendered(element)) return undefined;
  const style = getComputedStyle(element);
  const isHidden = style.visibility !== "visible";
  if (isFrame(element)) return void (isHidden || addFrame(writer, element));
  const mayHideRoot = tag.includes("-") || !visibility.read(Node.prototype, "firstChild", element);
  if (mayHideRoot && writer.doubtful.length < 64 && isDoubtfulAside(element)) writer.doubtful.push(element);
  if (addControl(writer, element, isHidden)) return undefined;
  if (tag === "img") return void (isHidden || addImage(writer, element));
  const isInline = isInPre ? tag !== "div" : /^(?:inline|contents)/.test(style.display);
  const name = kept.has(tag) ? tag : isInline ? "span" : "div";
  write(writer, `<${name}`, false);
  copyAttributes(writer, element);
  if (name === "a") addAttribute(writer, "href", addressOf(writer, element, "href", /^(?:https?|mailto|tel):/));
  // The HTML parser drops the first line break of a `pre`.
  write(writer, name === "pre" ? ">\n" : ">", false);
  if (empty.test(name)) return undefined;
  const close = `</${name}>`;
  return { nodes: roles.childrenOf(element), index: 0, close, isHidden, isPre: isInPre || name === "pre" };
}

function copyAttributes(writer: Writer, element: Element): void {
  if (!Element.prototype.hasAttributes.call(element)) return;
  for (const { name, value } of visibility.read(Element.prototype, "attributes", element)) {
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

/* Writes parsed HTML as Markdown in one walk. The time is proportional to the size of the page. */

/** Maximum depth of lists and quotations that are indented. Deeper ones are not indented further. */
const maxNesting = 16;
/** Maximum number of columns that are written for one cell. */
const maxSpan = 32;

const blocks =
  "address,article,aside,blockquote,caption,dd,details,div,dl,dt,figcaption,figure,footer,h1,h2,h3,h4,h5,h6,header,hr,li," +
  "main,nav,ol,p,pre,section,summary,table,tbody,td,tfoot,th,thead,tr,ul";
const blockTags = new Set(blocks.split(","));
const emphasis: Readonly<Record<string, string>> = { b: "**", strong: "**", em: "*", i: "*", del: "~~", s: "~~" };

/** Start of a line of text that Markdown would interpret as a list, heading, quotation, rule or fence. */
const lineStart = /^(\d+)(?=[.)] )|^(?=[-+](?: |$)|--|=+$|>|#{1,6} |~~~)/;

export class MarkdownWriter {
  readonly #formula: (math: Element) => string;
  readonly #lines: string[] = [];
  /** Text of the current block. Line breaks are those of `br`. */
  #text = "";
  /** Start of the next line, and of the lines after that line. */
  #first = "";
  #prefix = "";
  #nesting = 0;
  /** Whether an empty line separates the next line from the previous one. */
  #gap = false;

  /** Converts formulas with the given function. */
  constructor(formula: (math: Element) => string) {
    this.#formula = formula;
  }

  /** Returns the content of an element as Markdown. */
  write(root: Element): string {
    this.#children(root);
    this.#endBlock();
    return this.#lines.join("\n").trim();
  }

  #children(parent: Node): void {
    for (let node = parent.firstChild; node; node = node.nextSibling) {
      if (node instanceof Text) this.#text += escapeText(node.data);
      else if (node instanceof Element) this.#element(node);
    }
  }

  #element(element: Element): void {
    const tag = element.localName;
    if (blockTags.has(tag)) {
      this.#endBlock();
      this.#block(tag, element);
      this.#endBlock();
    } else if (tag === "br") this.#text += "\n";
    else if (tag in emphasis && element.querySelector(blocks)) this.#children(element);
    else if (isWritten(tag)) this.#text += this.#inline(element, "");
    else this.#children(element);
  }

  #block(tag: string, element: Element): void {
    if (tag === "hr") this.#addLines(["---"]);
    else if (tag === "pre") this.#code(element);
    else if (element instanceof HTMLTableElement) this.#table(element);
    else if (tag === "ul" || tag === "ol") this.#list(element, tag === "ol");
    else if (tag === "blockquote") this.#nest("> ", "> ", element);
    else if (/^h\d$/.test(tag)) {
      const title = this.#flat(element, "b").trim();
      if (title !== "") this.#addLines([`${"#".repeat(Number(tag[1]))} ${title}`]);
    } else this.#children(element);
  }

  /** Writes the text since the last block as a paragraph. */
  #endBlock(): void {
    const lines = this.#text.split("\n").map((line) => line.replace(/ {2,}/g, " ").trim());
    this.#text = "";
    const written = lines.filter((line) => line !== "").map((line) => line.replace(lineStart, "$1\\"));
    if (written.length > 0) this.#addLines(written.join("  \n").split("\n"));
  }

  #addLines(lines: readonly string[]): void {
    if (this.#gap && this.#lines.length > 0) this.#lines.push(this.#prefix.trimEnd());
    for (const line of lines) {
      this.#lines.push(this.#first + line);
      this.#first = this.#prefix;
    }
    this.#gap = true;
  }

  #list(list: Element, isOrdered: boolean): void {
    if (this.#nesting > 0) this.#gap = false;
    let number = integerOf(list, "start") ?? 1;
    let indent = "  ";
    for (let node = list.firstChild; node; node = node.nextSibling) {
      if (!(node instanceof Element)) continue;
      // A list that is a child of a list belongs to the item before it.
      if (/^[uo]l$/.test(node.localName)) this.#nest(indent, indent, node);
      else {
        number = integerOf(node, "value") ?? number;
        const marker = isOrdered ? `${number}. ` : "- ";
        indent = " ".repeat(marker.length);
        this.#nest(marker, indent, node);
        number += 1;
      }
      this.#gap = false;
    }
    this.#gap = this.#nesting === 0;
  }

  /** Writes the content of an element with a marker on its first line. */
  #nest(marker: string, indent: string, element: Element): void {
    const outer = { first: this.#first, prefix: this.#prefix };
    const isIndented = this.#nesting < maxNesting;
    if (this.#gap && this.#lines.length > 0) this.#lines.push(this.#prefix.trimEnd());
    this.#gap = false;
    this.#nesting += 1;
    const first = isIndented ? outer.first + marker : outer.first;
    this.#first = first;
    if (isIndented) this.#prefix += indent;
    const count = this.#lines.length;
    if (/^[uo]l$/.test(element.localName)) this.#element(element);
    else this.#children(element);
    this.#endBlock();
    this.#nesting -= 1;
    this.#prefix = outer.prefix;
    this.#first = this.#lines.length > count ? outer.prefix : outer.first;
    this.#gap = true;
  }

  #code(element: Element): void {
    const code = textOf(element).replace(/^\n+|\s+$/g, "");
    if (code === "") return;
    const inner = element.querySelector("code") ?? element;
    const language = inner.getAttribute("data-lang") ?? /language-(\w+)/.exec(inner.className)?.[1] ?? "";
    const fence = fenceOf(code, 3);
    this.#addLines([fence + language.replace(/\W/g, ""), ...code.split("\n"), fence]);
  }

  /**
   * Writes rows of cells. A table with one column or nested tables is only layout, so its cells are written in order.
   */
  #table(table: HTMLTableElement): void {
    const rows = [...table.rows].map((row) => [...row.cells]);
    if (table.caption) this.#element(table.caption);
    this.#endBlock();
    if (rows.every(({ length }) => length <= 1) || table.querySelector("table")) {
      for (const cell of rows.flat()) this.#element(cell);
      return;
    }
    const written = rows
      .map((cells) => cells.flatMap((cell) => this.#cell(cell)))
      .filter((cells) => cells.some(Boolean));
    const [head, ...rest] = written;
    if (!head) return;
    const columns = written.reduce((max, { length }) => Math.max(max, length), 0);
    const padded = [...head, ...Array<string>(columns - head.length).fill("")];
    this.#addLines([padded, Array<string>(columns).fill("---"), ...rest].map((cells) => `| ${cells.join(" | ")} |`));
  }

  #cell(cell: HTMLTableCellElement): string[] {
    const text = this.#flat(cell, "").replaceAll("|", "\\|").trim();
    return [text, ...Array<string>(Math.min(cell.colSpan, maxSpan) - 1).fill("")];
  }

  /** Returns the content of an element on one line. `open` lists the emphasis marks that are open around it. */
  #flat(parent: Node, open: string): string {
    let text = "";
    for (let node = parent.firstChild; node; node = node.nextSibling) {
      if (node instanceof Text) text += escapeText(node.data);
      else if (node instanceof Element) text += this.#inline(node, open);
    }
    return text;
  }

  #inline(element: Element, open: string): string {
    const tag = element.localName;
    if (tag === "br") return " ";
    if (tag === "img") return image(element);
    if (tag === "math") return this.#formula(element);
    if (tag === "code") return codeSpan(textOf(element));
    if (tag === "a") return link(element, this.#flat(element, open));
    const mark = emphasis[tag];
    if (mark !== undefined && !open.includes(mark.length > 1 && mark.startsWith("*") ? "b" : mark))
      return wrap(this.#flat(element, `${open}${mark === "**" ? "b" : mark}`), mark, mark);
    const text = this.#flat(element, open);
    if (tag === "sup" || tag === "sub") return /[[\n]/.test(text) ? text : wrap(text, `<${tag}>`, `</${tag}>`);
    return blockTags.has(tag) ? ` ${text} ` : text;
  }
}

const isWritten = (tag: string) => tag in emphasis || /^(?:a|code|img|math|su[bp])$/.test(tag);

/** Returns the integer of an attribute as HTML parses it. Undefined if there is none. */
function integerOf(element: Element, attribute: string): number | undefined {
  const value = Number.parseInt(element.getAttribute(attribute) ?? "", 10);
  return Number.isNaN(value) ? undefined : value;
}

const escapeText = (text: string): string =>
  text
    .replace(/\s+/g, " ")
    .replace(/[\\*_`[\]]/g, "\\$&")
    .replace(/<(?=\/?[A-Za-z][A-Za-z0-9-]*(?:\s|\/?>))/g, "\\<");

/** Puts marks around a text, without the white space at its ends. */
function wrap(text: string, before: string, after: string): string {
  const inner = text.trim();
  if (inner === "") return text;
  const start = text.length - text.trimStart().length;
  return text.slice(0, start) + before + inner.replace(/ {2,}/g, " ") + after + text.slice(start + inner.length);
}

function link(element: Element, text: string): string {
  const href = element.getAttribute("href") ?? "";
  const name = element.getAttribute("aria-label") ?? element.getAttribute("title") ?? "";
  const shown = text.trim() === "" ? escapeText(name) : text;
  return href === "" ? text : wrap(shown, "[", `](${address(href)})`);
}

function image(element: Element): string {
  const alt = escapeText(element.getAttribute("alt") ?? "").trim();
  const src = element.getAttribute("src") ?? "";
  return src === "" ? alt : `![${alt}](${address(src)})`;
}

const address = (url: string): string =>
  /\s/.test(url) ? `<${url.replace(/[\n>]/g, "")}>` : url.replace(/[()]/g, "\\$&");

function codeSpan(text: string): string {
  const code = text.replace(/\s+/g, " ").trim();
  const fence = fenceOf(code, 1);
  const space = code.startsWith("`") || code.endsWith("`") ? " " : "";
  return code === "" ? "" : fence + space + code + space + fence;
}

/** Returns at least `least` backticks, and more than the code has in a row. */
function fenceOf(code: string, least: number): string {
  const longest = (code.match(/`+/g) ?? []).reduce((max, { length }) => Math.max(max, length), least - 1);
  return "`".repeat(longest + 1);
}

/** Returns the text of code. Replaces each `br` in the element with a line break. */
function textOf(element: Element): string {
  for (const each of element.querySelectorAll("br")) each.replaceWith("\n");
  return element.textContent ?? "";
}

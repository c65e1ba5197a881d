interface SerializeOptions {
  /** Prefix of each frame's placeholder, followed by the frame's index in `frames` and `;`. */
  token: string;
  /** Characters after which serializing stops. */
  limit: number;
}

/** A serialized document. Above the limit, `html` is empty and `length` a lower bound. */
interface SerializedDocument {
  html: string;
  length: number;
  /** Elements that contain frames. */
  frames: readonly Element[];
}

/** Selects all elements, except elements with frequent names that can have neither a shadow root nor form state. */
const notable =
  ":not(a, b, br, button, code, em, i, img, label, li, link, meta, ol, option, path, script, strong, style, svg, table, tbody, td, th, thead, tr, ul)";

/** Serialized documents that are still needed, by token. */
const kept = new Map<string, SerializedDocument>();

interface Slice extends Pick<SerializedDocument, "length" | "html"> {
  /** Whether this is the whole document, without frames, so that nothing needs to be stored. */
  readonly isWhole: boolean;
}

/**
 * Returns a slice of the serialized document that does not split a surrogate pair. A call with offset 0 serializes the
 * document. Returns undefined if the document is not kept.
 */
export function readDocument(
  options: SerializeOptions,
  { from, size }: { from: number; size: number },
): Slice | undefined {
  const written = from === 0 ? serializeDocument(options) : kept.get(options.token);
  if (!written) return undefined;
  const { length, frames } = written;
  const last = written.html.charCodeAt(from + size - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  const html = written.html.slice(from, from + size - (isHalf ? 1 : 0));
  const isWhole = html.length === length && frames.length === 0;
  if (!isWhole) kept.set(options.token, written);
  return { length, html, isWhole };
}

/** Returns the element that contains a frame of a serialized document. */
export function frameHolder(token: string, index: number): Element | undefined {
  return kept.get(token)?.frames[index];
}

/** Keeps elements that contain frames for `frameHolder`. `forgetDocument` removes them. */
export function keepFrames(token: string, frames: readonly Element[]): void {
  kept.set(token, { html: "", length: 0, frames });
}

export function forgetDocument(token: string): void {
  kept.delete(token);
}

/**
 * Serializes the document with current form values and open shadow roots. Only elements with changed values, frames or
 * shadow roots, and their ancestors, are written here, without recursion. For all others, `outerHTML` is many times
 * faster.
 *
 * Named elements hide members of the document in every world. The document's methods are therefore called through the
 * prototype.
 */
function serializeDocument({ token, limit }: SerializeOptions): SerializedDocument {
  const voidTags = /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/;
  const rawTextTags = /^(?:style|script|xmp|iframe|noembed|noframes|plaintext|noscript)$/;
  const fixedTypes = /^(?:file|password|checkbox|radio|button|submit|reset|image|hidden)$/;
  const overrides = new Map<Element, Record<string, string | null>>();
  const contents = new Map<Element, string>();
  const opened = new Set<Node>();
  const frames: HTMLIFrameElement[] = [];

  const escapeText = (text: string) =>
    text
      .replace(/&/g, "&amp;")
      .replace(/\u00a0/g, "&nbsp;")
      .replace(/</g, "&lt;")
      .replace(/>/g, "&gt;");
  const escapeAttribute = (text: string) =>
    text
      .replace(/&/g, "&amp;")
      .replace(/\u00a0/g, "&nbsp;")
      .replace(/"/g, "&quot;");

  const openUp = (node: Node | null) => {
    for (let at = node; at && !opened.has(at); at = at.parentNode) opened.add(at);
  };
  const override = (element: Element, attributes: Record<string, string | null>) => {
    overrides.set(element, attributes);
    openUp(element);
  };
  const noteInput = (input: HTMLInputElement) => {
    if (input.type === "checkbox" || input.type === "radio") {
      if (input.checked !== input.hasAttribute("checked")) override(input, { checked: input.checked ? "" : null });
    } else if (!fixedTypes.test(input.type) && input.value !== (input.getAttribute("value") ?? "")) {
      override(input, { value: input.value });
    }
  };
  const noteSelect = (select: HTMLSelectElement) => {
    const options = [...select.options];
    const isUntouched = options.every((option) => option.selected === option.defaultSelected);
    const isFirst = !select.multiple && select.selectedIndex === options.findIndex((option) => !option.disabled);
    if (isUntouched || (isFirst && !options.some((option) => option.defaultSelected))) return;
    for (const option of options) {
      if (option.selected !== option.defaultSelected) override(option, { selected: option.selected ? "" : null });
    }
  };
  const noteTextArea = (area: HTMLTextAreaElement) => {
    if (area.value === area.defaultValue) return;
    contents.set(area, `\n${escapeText(area.value)}`);
    openUp(area);
  };
  const noteFrame = (element: HTMLIFrameElement) => {
    if (element.contentWindow) override(element, { srcdoc: `${token}${frames.push(element) - 1};` });
  };
  const note = (element: Element) => {
    if (element instanceof HTMLInputElement) noteInput(element);
    else if (element instanceof HTMLSelectElement) noteSelect(element);
    else if (element instanceof HTMLTextAreaElement) noteTextArea(element);
    else if (element instanceof HTMLIFrameElement) noteFrame(element);
  };
  const roots: (Document | ShadowRoot)[] = [document];
  for (let root = roots.pop(); root; root = roots.pop()) {
    const { querySelectorAll } = root instanceof Document ? Document.prototype : DocumentFragment.prototype;
    for (const element of querySelectorAll.call(root, notable)) {
      if (element.shadowRoot) {
        roots.push(element.shadowRoot);
        openUp(element);
      }
      note(element);
      // In a shadow root, `openUp` ends at the root. The host and its ancestors are already in `opened`.
    }
  }

  const parts: string[] = [];
  let length = 0;
  const write = (text: string) => {
    parts.push(text);
    length += text.length;
  };
  const nameOf = (element: Element) =>
    element.namespaceURI === "http://www.w3.org/1999/xhtml" ? element.localName : element.tagName;
  const writeStart = (element: Element) => {
    const own = overrides.get(element) ?? {};
    let tag = `<${nameOf(element)}`;
    for (const { name, value } of element.attributes) {
      if (!(name in own)) tag += ` ${name}="${escapeAttribute(value)}"`;
    }
    for (const [name, value] of Object.entries(own)) if (value !== null) tag += ` ${name}="${escapeAttribute(value)}"`;
    write(`${tag}>`);
  };
  const writeLeaf = (node: Node) => {
    if (node instanceof Element) return write(node.outerHTML);
    if (node instanceof Comment) return write(`<!--${node.data}-->`);
    if (!(node instanceof Text)) return;
    const parent = node.parentElement;
    write(parent && rawTextTags.test(parent.localName) ? node.data : escapeText(node.data));
  };
  const writeDoctype = ({ name, publicId, systemId }: DocumentType) => {
    const publicPart = publicId ? ` PUBLIC "${publicId}"` : "";
    const systemPart = systemId ? `${publicId ? "" : " SYSTEM"} "${systemId}"` : "";
    write(`<!DOCTYPE ${name}${publicPart}${systemPart}>`);
  };

  const stack: (Node | string)[] = [];
  const lastChildOf = Object.getOwnPropertyDescriptor(Node.prototype, "lastChild")?.get;
  const pushChildren = (node: Node) => {
    for (let child = lastChildOf?.call(node); child; child = child.previousSibling) stack.push(child);
  };
  pushChildren(document);
  const writeOpened = (element: Element) => {
    writeStart(element);
    if (voidTags.test(element.localName)) return;
    stack.push(`</${nameOf(element)}>`);
    const content = contents.get(element);
    if (content !== undefined) return write(content);
    pushChildren(element instanceof HTMLTemplateElement ? element.content : element);
    if (!element.shadowRoot) return;
    stack.push("</template>");
    pushChildren(element.shadowRoot);
    const focus = element.shadowRoot.delegatesFocus ? " shadowrootdelegatesfocus" : "";
    write(`<template shadowrootmode="open"${focus}>`);
  };
  while (stack.length > 0 && length <= limit) {
    const node = stack.pop();
    if (typeof node === "string") write(node);
    else if (node instanceof DocumentType) writeDoctype(node);
    else if (node instanceof Element && opened.has(node)) writeOpened(node);
    else if (node) writeLeaf(node);
  }
  return { html: length <= limit ? parts.join("") : "", length, frames };
}

// Functions that detect bot checks.

/** Properties of a document that indicate a bot check. */
export interface DocumentReport {
  /** Whether the document is still being parsed. */
  readonly isLoading: boolean;
  readonly title: string;
  readonly headings: readonly string[];
  /** All visible text, or undefined if the text is too long for a check page. */
  readonly text: string | undefined;
  /** Number of visible elements that can be clicked or filled in. 0 if `text` is undefined. */
  readonly controls: number;
  readonly links: number;
  /** Whether the document shows inputs that checks do not have: password, e-mail, phone or search. */
  readonly hasForm: boolean;
  readonly isCloudflare: boolean;
  readonly isPerimeterX: boolean;
}

/** Describes the document once it has loaded. */
export async function describeLoaded(): Promise<DocumentReport> {
  if (document.readyState !== "complete") await new Promise((resolve) => addEventListener("load", resolve));
  return describeDocument();
}

/**
 * Describes the document. Named elements hide members of the document in every world (`<img name="querySelectorAll">`),
 * so methods are called through the prototype.
 */
export function describeDocument(): DocumentReport {
  const maxText = 1_500;
  const maxNodes = 1_000;
  const maxLine = 200;
  const silentTags = /^(?:script|style|noscript|template|option|title)$/i;
  const all = (selector: string): Element[] => [...Document.prototype.querySelectorAll.call(document, selector)];
  const isVisible = (element: Element) => element.checkVisibility({ visibilityProperty: true });
  const lineOf = (element: Element) => (element.textContent ?? "").replace(/\s+/g, " ").trim().slice(0, maxLine);

  const readText = (root: Element): string | undefined => {
    const walker = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_TEXT);
    let text = "";
    let nodes = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      nodes += 1;
      if (nodes > maxNodes) return undefined;
      const parent = node.parentElement;
      const line = (node.nodeValue ?? "").trim();
      if (line === "" || !parent || silentTags.test(parent.localName) || !isVisible(parent)) continue;
      text += `${line} `;
      if (text.length > maxText) return undefined;
    }
    return text;
  };

  const [title] = all("head > title");
  const [body] = all("body");
  const [px] = all("#px-captcha");
  const text = body ? readText(body) : "";
  // A document with too much text is not a check, so its elements are not counted.
  const few = text === undefined ? () => [] : (selector: string) => all(selector).filter(isVisible);
  return {
    isLoading: document.readyState === "loading",
    title: title ? lineOf(title) : "",
    headings: few("h1, h2, h3, [role=heading]").slice(0, 5).map(lineOf),
    text,
    controls: few("button, input:not([type=hidden]), textarea, canvas, iframe, [role=button], [role=checkbox]").length,
    links: few("a[href]").length,
    hasForm: few("input:is([type=password], [type=email], [type=tel], [type=search])").length > 0,
    isCloudflare: all('script[src*="/cdn-cgi/challenge-platform/"][src*="/orchestrate/"]').length > 0,
    isPerimeterX: px !== undefined && isVisible(px) && px.getBoundingClientRect().height > 0,
  };
}

/** Whether the element that contains a frame is visible and has at least the given size. */
export function isShownAtSize(holder: Element, minWidth: number, minHeight: number): boolean {
  const { width, height, right } = holder.getBoundingClientRect();
  // Elements to the left of the page cannot be scrolled into view.
  return width >= minWidth && height >= minHeight && right > 0 && holder.checkVisibility({ visibilityProperty: true });
}

/** Whether one of the first `max` matches has a value. Also searches open shadow roots. */
export function hasValue(selector: string, max: number): boolean {
  const fields: Element[] = [];
  const roots: (Document | ShadowRoot)[] = [document];
  for (let root = roots.pop(); root && fields.length < max; root = roots.pop()) {
    const { querySelectorAll } = root instanceof Document ? Document.prototype : DocumentFragment.prototype;
    fields.push(...querySelectorAll.call(root, selector));
    for (const element of querySelectorAll.call(root, "*")) {
      const shadow: ShadowRoot | null = Reflect.get(Element.prototype, "shadowRoot", element);
      if (shadow) roots.push(shadow);
    }
  }
  return fields.slice(0, max).some((field) => "value" in field && field.value !== "");
}

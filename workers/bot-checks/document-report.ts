import type { CdpSession } from "../cdp/cdp-session.ts";
import { ownWorld } from "../pages/own-world.ts";

/** Script timeout in milliseconds. An ordinary page takes 1 ms. */
const scriptMs = 500;

/** Properties of a document that indicate a bot check. */
export interface DocumentReport {
  /** Whether the document is still being parsed. */
  readonly isLoading: boolean;
  readonly title: string;
  readonly headings: readonly string[];
  /** All visible text, or undefined if the text is too long for a check page. */
  readonly text: string | undefined;
  /** Number of elements that can be clicked or filled in. */
  readonly controls: number;
  readonly links: number;
  /** Whether the document has inputs that checks do not have: password, email, phone or search. */
  readonly hasForm: boolean;
  readonly isCloudflare: boolean;
  readonly isPerimeterX: boolean;
}

/**
 * Describes the main document of a page from an isolated world, now or at its load event. A report requested before the
 * load arrives with the load event, which saves two round trips to a busy renderer.
 */
export async function reportDocument(cdp: CdpSession, frameId: string, when: "now" | "load"): Promise<DocumentReport> {
  const { executionContextId } = await cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
  const { result, exceptionDetails } = await cdp.send("Runtime.evaluate", {
    expression: when === "now" ? `(${describeDocument})()` : `(${awaitLoad})().then(${describeDocument})`,
    contextId: executionContextId,
    awaitPromise: when === "load",
    returnByValue: true,
    timeout: scriptMs,
  });
  if (exceptionDetails) throw new Error(`failed to describe the document: ${exceptionDetails.text}`);
  return result.value;
}

/** Runs in the page. */
async function awaitLoad(): Promise<void> {
  if (document.readyState !== "complete") await new Promise((resolve) => addEventListener("load", resolve));
}

/**
 * Runs in an isolated world. Calls methods through `Document.prototype`, because named elements can shadow them in every
 * world, such as `<img name="querySelectorAll">`.
 */
function describeDocument(): DocumentReport {
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
  // A document with much text is not a check, so the rest is not counted.
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

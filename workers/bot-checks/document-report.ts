import type { CdpSession } from "../cdp/cdp-session.ts";
import { ownWorld } from "../pages/own-world.ts";

/** Milliseconds after which the browser ends the script: it takes 1 on an ordinary page. */
const scriptMs = 500;

/** What a document shows of whether it is a check. */
export interface DocumentReport {
  /** The document has not been read to its end. */
  readonly isLoading: boolean;
  readonly title: string;
  readonly headings: readonly string[];
  /** All visible text; absent when there is more than a page needs that is nothing but a check. */
  readonly text: string | undefined;
  /** What can be clicked or filled in. */
  readonly controls: number;
  readonly links: number;
  /** It asks for what a check does not: a password, an address, a search. */
  readonly hasForm: boolean;
  readonly isCloudflare: boolean;
  readonly isPerimeterX: boolean;
}

/**
 * Looks at the main document of a page, whose main frame goes by the name of its target, from a world of its own: now, or
 * when it has loaded. Asked for ahead, the report comes with the load, and not two rounds to a busy renderer later.
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
  if (exceptionDetails) throw new Error(`the document cannot be described: ${exceptionDetails.text}`);
  return result.value;
}

/** Runs in the page. */
async function awaitLoad(): Promise<void> {
  if (document.readyState !== "complete") await new Promise((resolve) => addEventListener("load", resolve));
}

/**
 * Runs in the page, in a world of its own. Documents name their members after elements (`<img name="querySelectorAll">`),
 * in every world, so what is asked of the document is asked through its prototype.
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
  // A document that says much is no check, whatever else there is on it: the rest need not be counted.
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

// Script that converts the content of a page to Markdown. Loaded into the converter page, or into the document itself.

// Imported first, because the library tests on import whether `DOMParser` can parse HTML.
import "./safe-parsing.ts";

import defuddle from "defuddle/full";
import { MarkdownWriter } from "./markdown-writer.ts";
import { parseHtml } from "./safe-parsing.ts";

interface Library extends Pick<typeof defuddle, "createMarkdownContent"> {
  new (...options: ConstructorParameters<typeof defuddle.default>): { readonly defuddle: SinglePass };
}

/**
 * Runs one extraction. The library's `parse` runs up to five extractions on short pages. We convert such pages as a
 * whole instead.
 */
interface SinglePass {
  parseInternal(): { readonly content: string };
}

// Cast: the module exports the class itself, unlike its declarations, which also declare `parseInternal` as private.
const Defuddle = defuddle as unknown as Library;

/** Minimum share of the text outside of links and navigation that an extraction must keep. */
const minKept = 0.5;

/** Maximum characters of HTML for an extraction by the library. The extraction time grows faster than the length. */
const maxExtracted = 131_072;

const navigation = "nav, aside, footer, [role=navigation], [role=complementary], [role=contentinfo]";

/** Maximum characters of a formula's markup. Of longer formulas only the text is written. */
const maxFormula = 10_000;

/**
 * Converts HTML without scripts to Markdown. Converts the main content only, or all of the HTML if `isPart` is true or
 * no main content is found.
 */
export function toMarkdown(html: string, url: string, isPart: boolean): string {
  const main = isPart ? undefined : html.length > maxExtracted ? mainLandmark(html) : mainContent(html, url);
  const formula = (math: Element) =>
    math.outerHTML.length > maxFormula
      ? (math.textContent ?? "")
      : Defuddle.createMarkdownContent(math.outerHTML, url).trim();
  return new MarkdownWriter(formula).write(main ?? parseHtml(html).body);
}

/** Returns the main content of a page. Undefined if the extraction fails, or lacks most of the page's text. */
function mainContent(html: string, url: string): Element | undefined {
  const page = parseHtml(html);
  // Without links and navigation there is nothing to leave out, and the library would remove labels and times.
  if (!page.querySelector(`a[href], ${navigation}`)) return page.body;
  const title = page.querySelector("h1")?.cloneNode(true);
  const letters = lettersOf(page.body);
  let content: string;
  try {
    const options = { url, useAsync: false };
    ({ content } = new Defuddle(page, options).defuddle.parseInternal());
  } catch {
    return undefined;
  }
  const { body } = parseHtml(content);
  // The extraction removes a heading that repeats the title of the page.
  if (title && !(body.textContent ?? "").includes(title.textContent?.trim() ?? "")) body.prepend(title);
  const left = lettersOf(body);
  return left > 0 && left >= minKept * letters ? body : undefined;
}

/**
 * Returns the part of a large page that the page marks as its main part, or the page without its navigation. Undefined
 * if the page has no text outside of links and navigation.
 */
function mainLandmark(html: string): Element | undefined {
  const { body } = parseHtml(html);
  for (const each of body.querySelectorAll(navigation)) each.remove();
  const letters = lettersOf(body);
  if (letters === 0) return undefined;
  const [main, ...others] = body.querySelectorAll("main, [role=main]");
  const isMain = main && others.length === 0 && lettersOf(main) >= minKept * letters;
  const title = body.querySelector("h1");
  if (isMain && title && !main.contains(title)) main.prepend(title);
  return isMain ? main : body;
}

/** Returns the number of characters, without white space, of an element's text outside of links and navigation. */
function lettersOf(element: Element): number {
  const copy = element.cloneNode(true) as Element;
  for (const each of copy.querySelectorAll(`a, ${navigation}`)) each.remove();
  return (copy.textContent ?? "").replace(/\s+/g, "").length;
}

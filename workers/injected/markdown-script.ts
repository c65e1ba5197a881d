// The script that converts the content of a page to Markdown. Loaded only into documents that are read.

// Imported before the library, which tests at once whether it can parse HTML.
import "./safe-parsing.ts";

import defuddle from "defuddle/full";
import { parseHtml } from "./safe-parsing.ts";

// Cast: the module exports the class itself, unlike its declarations.
const Defuddle = defuddle as unknown as typeof defuddle.default & Pick<typeof defuddle, "createMarkdownContent">;

/** Start of what the library returns when the conversion fails. HTML follows. */
const failed = "Partial conversion completed with errors";

/** Least share of the text outside of links and navigation that an extraction must keep. */
const minKept = 0.5;

/** Converts HTML without scripts to Markdown. For a part, or if extraction fails, converts all of it. */
export function toMarkdown(html: string, url: string, isPart: boolean): string {
  const content = isPart ? undefined : mainContent(html, url);
  // The library drops a heading at the beginning, because it takes the heading for the title.
  const markdown = Defuddle.createMarkdownContent(`<h1>title</h1>${content ?? html}`, url);
  if (markdown.startsWith(failed)) throw new Error("the conversion to Markdown failed");
  return markdown;
}

/** Returns the main content of a page. Undefined if there is none, or if it lacks most of the page's text. */
function mainContent(html: string, url: string): string | undefined {
  const page = parseHtml(html);
  const title = page.querySelector("h1");
  let content: string;
  try {
    ({ content } = new Defuddle(parseHtml(html), { url, useAsync: false }).parse());
  } catch {
    return undefined;
  }
  const extracted = parseHtml(content);
  // The extraction takes a heading that repeats the title of the page for metadata.
  const has = (extracted.body.textContent ?? "").includes(title?.textContent?.trim() ?? "");
  const complete = has || !title ? content : title.outerHTML + content;
  const left = lettersOf(extracted);
  return left > 0 && left >= minKept * lettersOf(page) ? complete : undefined;
}

/** Returns the number of letters outside of links and navigation, and removes the rest from the document. */
function lettersOf({ body }: Document): number {
  for (const each of body.querySelectorAll("nav, aside, footer, a, [role=navigation]")) each.remove();
  return (body.textContent ?? "").replace(/\s+/g, "").length;
}

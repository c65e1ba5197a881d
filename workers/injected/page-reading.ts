import { type ContentOptions, type PageContent, serializeContent } from "./page-content.ts";
import { elementOf, type Named, type Ref, staleness } from "./page-refs.ts";
import { readContent } from "./page-role.ts";
import * as visibility from "./page-visibility.ts";
import type { Seen } from "./page-wait.ts";

/** Returns the value or text of an element, on one line. */
export function readElementText(ref: Named): Seen<string> {
  const stale = staleness(ref);
  const element = typeof ref === "string" ? undefined : elementOf(ref);
  if (stale !== undefined || !element) return { hindrance: stale ?? "is gone from the page", isFinal: true };
  return { value: readContent(element) };
}

/** Returns the visible content of an element. */
export function elementContent(ref: Ref, options: ContentOptions): Seen<PageContent> {
  const stale = staleness(ref);
  if (stale !== undefined) return { hindrance: stale, isFinal: true };
  return { value: serializeContent(elementOf(ref), options) };
}

/** Returns title, scroll position and height of the document. */
export function readPageHead() {
  const page = document.scrollingElement ?? document.documentElement;
  return { title: visibility.title(), scroll: { x: scrollX, y: scrollY }, height: page?.scrollHeight ?? 0 };
}

/*
 * Where the focus of a document is, and what is put there. These functions run in the page, beside those of the files
 * declared here: `page-script.ts` sends their source there.
 */

declare const fields: typeof import("./page-fields.ts");
declare const sight: typeof import("./page-sight.ts");

/** The element that has the focus, in whatever shadow root. */
export function focusedElement(): Element | null {
  let focused = sight.read(Document.prototype, "activeElement", document);
  for (let root = focused && sight.shadowOf(focused); root; root = focused && sight.shadowOf(focused)) {
    const inner = sight.read(ShadowRoot.prototype, "activeElement", root);
    if (!inner) break;
    focused = inner;
  }
  return focused;
}

/** The origin of the document; `null` for one that has none. */
export function originHere(): string {
  return origin;
}

/**
 * Puts a text where the focus is, if that is in a document of this origin: all at once, so that none of it goes elsewhere
 * when the focus does. Says whether it was taken; undefined where the document is of another origin.
 */
export function putText(text: string, wanted: string): boolean | undefined {
  if (origin !== wanted) return undefined;
  const focused = focusedElement();
  if (
    focused instanceof HTMLInputElement &&
    /^(?:color|date|datetime-local|month|range|time|week)$/.test(focused.type)
  ) {
    fields.keepSecret(focused);
    focused.value = text;
    focused.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    focused.dispatchEvent(new Event("change", { bubbles: true }));
    return focused.value !== "";
  }
  // By characters: a page that has a field for each digit of a code moves the focus with them.
  for (const character of text.length > 64 ? [text] : text) {
    const field = focusedElement();
    if (!Document.prototype.execCommand.call(document, "insertText", false, character)) return false;
    if (field) fields.keepSecret(field);
  }
  return true;
}

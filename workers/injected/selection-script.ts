/**
 * Returns at most `length` characters of the selected text: of the focused field, or else of the focused document.
 * Returns an empty string for a password field.
 */
export function selectedText(length: number): string {
  const focusOf = (root: Document | ShadowRoot): Element | null => {
    const { activeElement: focused } = root;
    if (focused instanceof HTMLIFrameElement && focused.contentDocument) return focusOf(focused.contentDocument);
    return focused?.shadowRoot ? focusOf(focused.shadowRoot) : focused;
  };
  const focused = focusOf(document);
  // `instanceof` cannot be used: elements of another frame are not instances of this realm's classes.
  const field = focused as Partial<HTMLInputElement> | null;
  const { value, selectionStart: start, selectionEnd: end } = field ?? {};
  if (typeof value === "string" && typeof start === "number" && typeof end === "number")
    return field?.type === "password" ? "" : value.slice(start, end).slice(0, length);
  const shown = focused?.ownerDocument ?? document;
  return String(shown.getSelection() ?? "").slice(0, length);
}

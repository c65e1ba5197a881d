import { whenReady } from "./page-aim.ts";
import { keepSecret } from "./page-fields.ts";
import * as visibility from "./page-visibility.ts";
import type { ElementOptions, Seen } from "./page-wait.ts";

/** Whether an element has the focus of its document or shadow root. */
export function hasFocus(element: Element): boolean {
  const root = element.getRootNode();
  return (root instanceof Document || root instanceof ShadowRoot) && root.activeElement === element;
}

/** Focuses an element, or the control of a label, once it is visible. */
export function focusElement(options: ElementOptions): Promise<Seen<true>> {
  return whenReady(options, (named) => {
    const element = (named instanceof HTMLLabelElement && named.control) || named;
    const canFocus = element instanceof HTMLElement || element instanceof SVGElement;
    if (canFocus && !hasFocus(element)) element.focus();
    return canFocus && hasFocus(element) ? { value: true } : { hindrance: "does not accept focus" };
  });
}

/** Returns the focused element, searching shadow roots. */
export function focusedElement(): Element | null {
  let focused = visibility.read(Document.prototype, "activeElement", document);
  for (let root = focused && visibility.shadowOf(focused); root; root = focused && visibility.shadowOf(focused)) {
    const inner = visibility.read(ShadowRoot.prototype, "activeElement", root);
    if (!inner) break;
    focused = inner;
  }
  return focused;
}

/** Inserts a text at the focus, with its line breaks. Returns whether the text was accepted. */
export function insertText(text: string): boolean {
  return Document.prototype.execCommand.call(document, "insertText", false, text);
}

/** Returns the document's origin. The string `null` for an opaque origin. */
export function originHere(): string {
  return origin;
}

/**
 * Inserts a text at the focus, synchronously, so that the focus cannot move to another document meanwhile. Returns
 * whether the text was accepted, or undefined if the document's origin is not `wanted`.
 */
export function insertSecretText(text: string, wanted: string): boolean | undefined {
  if (origin !== wanted) return undefined;
  const focused = focusedElement();
  if (
    focused instanceof HTMLInputElement &&
    /^(?:color|date|datetime-local|month|range|time|week)$/.test(focused.type)
  ) {
    keepSecret(focused);
    focused.value = text;
    focused.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    focused.dispatchEvent(new Event("change", { bubbles: true }));
    return focused.value !== "";
  }
  // Inserts a text of up to 64 characters one character at a time, because pages with one field per digit of a code
  // move the focus after each character.
  for (const character of text.length > 64 ? [text] : text) {
    const field = focusedElement();
    if (!insertText(character)) return false;
    if (field) keepSecret(field);
  }
  return true;
}

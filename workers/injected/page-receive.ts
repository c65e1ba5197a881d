import { whenReady } from "./page-aim.ts";
import { hasFocus } from "./page-focus.ts";
import type { ElementOptions, Seen } from "./page-wait.ts";

/** Result of preparing an element for a text. */
export type Reception =
  /** The element has focus and any text to clear is selected: keys can be sent. */
  | { readonly outcome: "ready" }
  /** The control holds a single value, which was set to the text. */
  | { readonly outcome: "set" }
  /** The element accepts no text, or not this text. `type` is the type of the control. */
  | { readonly outcome: "acceptsNone" | "refused"; readonly type: string };

/** The requested change to the element. */
interface Wanted {
  readonly text: string;
  readonly clear: boolean;
}

/** Prepares an element for key input, or sets its value, once the element is visible and can accept text. */
export function receiveText(options: ElementOptions, wanted: Wanted): Promise<Seen<Reception>> {
  return whenReady(options, (element) => receive(element, wanted));
}

function receive(named: Element, { text, clear }: Wanted): Seen<Reception> {
  const element = (named instanceof HTMLLabelElement && named.control) || named;
  const textless = ["button", "checkbox", "file", "hidden", "image", "radio", "reset", "submit"];
  const valued = ["color", "date", "datetime-local", "month", "range", "time", "week"];
  const hindered = (hindrance: string) => ({ hindrance });

  const setValue = (input: HTMLInputElement): Reception => {
    const before = input.value;
    input.value = text;
    const isTaken = text === "" || isValue(input);
    if (!isTaken) input.value = before;
    if (!isTaken) return { outcome: "refused", type: input.type };
    input.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
    return { outcome: "set" };
  };

  // The browser replaces an invalid colour or range value with a valid one, and empties other inputs.
  const isValue = ({ type, value }: HTMLInputElement) => {
    if (type === "range") return Number(value) === Number(text);
    return type === "color" ? value === text.trim().toLowerCase() : value !== "";
  };

  const select = (field: HTMLInputElement | HTMLTextAreaElement | undefined) => {
    if (field) field.select();
    else getSelection()?.selectAllChildren(element);
  };

  const moveToEnd = (field: HTMLInputElement | HTMLTextAreaElement | undefined) => {
    if (!field) {
      getSelection()?.selectAllChildren(element);
      getSelection()?.collapseToEnd();
    } else if (field.selectionStart === null) getSelection()?.modify("move", "forward", "documentboundary");
    else field.setSelectionRange(field.value.length, field.value.length);
  };

  if (!(element instanceof HTMLElement)) return hindered("does not accept text");
  const input = element instanceof HTMLInputElement ? element : undefined;
  const field = element instanceof HTMLTextAreaElement ? element : input;
  const isTextless = element instanceof HTMLButtonElement || element instanceof HTMLSelectElement;
  if (isTextless || (input && textless.includes(input.type)))
    return { value: { outcome: "acceptsNone", type: input?.type ?? element.localName } };
  if (element.matches(":disabled")) return hindered("is disabled");
  if (!field && !element.isContentEditable) return hindered("does not accept text");
  if (field?.readOnly) return hindered("is read-only");

  const isNumber = text === "" || !Number.isNaN(Number(text));
  if (clear && input?.type === "number" && !isNumber) return { value: { outcome: "refused", type: "number" } };

  const hadFocus = hasFocus(element);
  if (!hadFocus) element.focus();
  if (!hasFocus(element)) return hindered("does not accept focus");
  if (input && valued.includes(input.type)) return { value: setValue(input) };
  if (clear) select(field);
  else if (!hadFocus) moveToEnd(field);
  return { value: { outcome: "ready" } };
}

import type { Command, InputEvent } from "./messages.ts";

/** What the keyboard of a viewer works on. */
export interface KeyboardParts {
  /** Has the focus while keys belong to the page: only an editable element has input methods, and a keyboard on a phone. */
  readonly field: HTMLTextAreaElement;
  steers(): boolean;
  push(event: InputEvent): void;
  command(command: Command): void;
  /** Takes the selection of the page, as it is when what was sent before is done, to the clipboard. */
  copy(): void;
  paste(text: string): void;
  /** Keys belong to the frame around the picture again. */
  leave(): void;
}

/** The field always has something to delete, or some keyboards tell nothing of a deletion. */
const filler = " ";

/** Keys that an input method has taken, or that are told by what they come to (UI Events, 5.3; KeyboardEvent key Values, 3). */
const untold = new Set(["Process", "Unidentified", "Dead"]);
const takenKeyCode = 229;

/** What a keyboard of a phone does without a key (Input Events Level 2, 5.1.2), as the keys that do it. */
const deedKeys: Readonly<Record<string, readonly string[]>> = {
  insertLineBreak: ["Enter"],
  insertParagraph: ["Enter"],
  deleteContentBackward: ["Backspace"],
  deleteContentForward: ["Delete"],
  deleteWordBackward: ["Control", "Backspace"],
  deleteWordForward: ["Control", "Delete"],
  deleteSoftLineBackward: ["Shift", "Home", "Backspace"],
};

const isMac = navigator.platform.startsWith("Mac");

/** A Mac's command key is the control key of the session's browser. */
function toSessionKey({ key, code, location }: KeyboardEvent) {
  if (!isMac || key !== "Meta") return { key, code, location };
  return { key: "Control", code: code.replace("Meta", "Control"), location };
}

/** What a browser does by itself at a key, the session's browser is asked to do. */
function toCommand({ key, code, altKey, ctrlKey, metaKey }: KeyboardEvent): Command | undefined {
  const commands = isMac ? metaKey : ctrlKey;
  if (key === "F5" || (commands && code === "KeyR")) return { kind: "reload" };
  if (altKey && key === "ArrowLeft") return { kind: "back" };
  return altKey && key === "ArrowRight" ? { kind: "forward" } : undefined;
}

/** Sends what is typed, key by key; what input methods compose, as they compose it; and what else comes to be text. */
export function attachKeyboard(parts: KeyboardParts): void {
  const { field, steers, push } = parts;
  const held = new Map<string, { key: string; code: string; location: number }>();

  function refill(): void {
    field.value = filler;
    field.setSelectionRange(filler.length, filler.length);
  }

  function release(code: string): void {
    const key = held.get(code);
    if (!key) return;
    held.delete(code);
    push({ kind: "key_up", ...key });
  }

  function press(event: KeyboardEvent): void {
    const key = toSessionKey(event);
    held.set(event.code, key);
    push({ kind: "key_down", ...key });
    // While the command key is held a Mac does not tell that another is released.
    if (isMac && event.metaKey && event.key !== "Meta") release(event.code);
  }

  /** Presses keys one above the other, and releases them. */
  function strike(keys: readonly string[]): void {
    for (const key of keys) push({ kind: "key_down", key });
    for (const key of keys.toReversed()) push({ kind: "key_up", key });
  }

  field.addEventListener("keydown", (event) => {
    if (!steers() || event.isComposing || event.keyCode === takenKeyCode || untold.has(event.key)) return;
    const commands = !event.altKey && (isMac ? event.metaKey : event.ctrlKey);
    // The paste that follows has the text.
    if (commands && event.code === "KeyV") return;
    event.preventDefault();
    const command = toCommand(event);
    if (event.key === "Escape" && event.shiftKey) parts.leave();
    else if (command) parts.command(command);
    else if (event.getModifierState("AltGraph") && event.key.length === 1) push({ kind: "text", text: event.key });
    else {
      // Before the key: what is cut is gone behind it. The service does one after the other.
      if (commands && (event.code === "KeyC" || event.code === "KeyX")) parts.copy();
      press(event);
    }
  });
  field.addEventListener("keyup", (event) => {
    if (held.has(event.code)) event.preventDefault();
    release(event.code);
  });
  field.addEventListener("blur", () => {
    for (const code of [...held.keys()].toReversed()) release(code);
  });

  field.addEventListener("beforeinput", (event) => {
    // What is composed is told by the events of the composition.
    if (!steers() || event.isComposing || event.inputType.includes("Composition")) return;
    event.preventDefault();
    const text = event.data ?? event.dataTransfer?.getData("text/plain") ?? "";
    const { [event.inputType]: keys } = deedKeys;
    if (keys) strike(keys);
    else if (text !== "" && event.inputType.startsWith("insert")) push({ kind: "text", text });
  });
  // Not every keyboard lets itself be kept from the field.
  field.addEventListener("input", (event) => {
    if (!(event instanceof InputEvent) || !event.isComposing) refill();
  });
  field.addEventListener("compositionupdate", ({ data }) => {
    if (steers()) push(composition(data, false));
  });
  field.addEventListener("compositionend", ({ data }) => {
    if (steers()) push(composition(data, data !== ""));
    refill();
  });
  field.addEventListener("paste", (event) => {
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (steers() && text !== "") parts.paste(text);
  });
  refill();
}

function composition(text: string, done: boolean): InputEvent {
  return { kind: "composition", text, selection_start: text.length, selection_end: text.length, done };
}

import type { Command, InputEvent } from "./messages.ts";

/** Dependencies of the handler of keyboard input. */
export interface KeyboardParts {
  /**
   * Element that is focused while the session's page receives keys. Only editable elements have input methods, and a
   * keyboard on phones.
   */
  readonly field: HTMLTextAreaElement;
  hasControl(): boolean;
  push(event: InputEvent): void;
  command(command: Command): void;
  /** Copies the selection of the session's page to the clipboard, after the input sent so far. */
  copy(): void;
  paste(text: string): void;
  /** Moves the keyboard focus to the controls around the picture. */
  releaseFocus(): void;
}

/** Content of the field. Some keyboards report a deletion only if the field contains text. */
const filler = " ";

/** Keys that an input method handles, or whose text only other events report (UI Events, 5.3; Key Values, 3). */
const unsentKeys = new Set(["Process", "Unidentified", "Dead"]);
const inputMethodKeyCode = 229;

/** Keys to press for each input type of phone keyboards (Input Events Level 2, 5.1.2). */
const inputTypeKeys: Readonly<Record<string, readonly string[]>> = {
  insertLineBreak: ["Enter"],
  insertParagraph: ["Enter"],
  deleteContentBackward: ["Backspace"],
  deleteContentForward: ["Delete"],
  deleteWordBackward: ["Control", "Backspace"],
  deleteWordForward: ["Control", "Delete"],
  deleteSoftLineBackward: ["Shift", "Home", "Backspace"],
};

const isMac = navigator.platform.startsWith("Mac");

/** Returns the key to send. The command key of a Mac becomes Control in the session's browser. */
function toSessionKey({ key, code, location }: KeyboardEvent) {
  if (!isMac || key !== "Meta") return { key, code, location };
  return { key: "Control", code: code.replace("Meta", "Control"), location };
}

/** Returns the browser command of a key, such as reload, if any. */
function toCommand({ key, code, altKey, ctrlKey, metaKey }: KeyboardEvent): Command | undefined {
  const commands = isMac ? metaKey : ctrlKey;
  if (key === "F5" || (commands && code === "KeyR")) return { kind: "reload" };
  if (altKey && key === "ArrowLeft") return { kind: "back" };
  return altKey && key === "ArrowRight" ? { kind: "forward" } : undefined;
}

/** Sends typed keys, compositions of input methods, and other text input. */
export function attachKeyboard(parts: KeyboardParts): void {
  const { field, hasControl, push } = parts;
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
    // While the command key is held, a Mac does not report the release of other keys.
    if (isMac && event.metaKey && event.key !== "Meta") release(event.code);
  }

  /** Presses keys in order, and releases them in reverse order. */
  function pressKey(keys: readonly string[]): void {
    for (const key of keys) push({ kind: "key_down", key });
    for (const key of keys.toReversed()) push({ kind: "key_up", key });
  }

  field.addEventListener("keydown", (event) => {
    if (!hasControl() || event.isComposing || event.keyCode === inputMethodKeyCode || unsentKeys.has(event.key)) return;
    const commands = !event.altKey && (isMac ? event.metaKey : event.ctrlKey);
    // The following paste event contains the text.
    if (commands && event.code === "KeyV") return;
    event.preventDefault();
    const command = toCommand(event);
    if (event.key === "Escape" && event.shiftKey) parts.releaseFocus();
    else if (command) parts.command(command);
    else if (event.getModifierState("AltGraph") && event.key.length === 1) push({ kind: "text", text: event.key });
    else {
      // Copies before the key is sent, because cutting removes the selection. The service handles both in order.
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
    // Composition events report composed text.
    if (!hasControl() || event.isComposing || event.inputType.includes("Composition")) return;
    event.preventDefault();
    const text = event.data ?? event.dataTransfer?.getData("text/plain") ?? "";
    const { [event.inputType]: keys } = inputTypeKeys;
    if (keys) pressKey(keys);
    else if (text !== "" && event.inputType.startsWith("insert")) push({ kind: "text", text });
  });
  // Some keyboards ignore preventDefault and change the field.
  field.addEventListener("input", (event) => {
    if (!(event instanceof InputEvent) || !event.isComposing) refill();
  });
  field.addEventListener("compositionupdate", ({ data }) => {
    if (hasControl()) push(composition(data, false));
  });
  field.addEventListener("compositionend", ({ data }) => {
    if (hasControl()) push(composition(data, data !== ""));
    refill();
  });
  field.addEventListener("paste", (event) => {
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (hasControl() && text !== "") parts.paste(text);
  });
  refill();
}

function composition(text: string, done: boolean): InputEvent {
  return { kind: "composition", text, selection_start: text.length, selection_end: text.length, done };
}

import type { CdpSession } from "../cdp/cdp-session.ts";
import { isModifier, type Key, type Modifier, modifierKeys } from "./keys.ts";

/** Modifier bits in CDP. */
const modifierBits: Readonly<Record<Modifier, number>> = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** Modifiers with which keys are shortcuts and type no text. */
const commanding = modifierBits.Alt | modifierBits.Control | modifierBits.Meta;

/** Key event that pages receive while an input method composes text. */
const processed = { key: "Process", windowsVirtualKeyCode: 229 };

/**
 * The keyboard of a page. Each promise resolves when the page has handled the key. Pages handle keys in order, so
 * callers may send the next key without waiting.
 */
export class Keyboard {
  readonly #cdp: Pick<CdpSession, "send">;
  readonly #held = new Map<string, Key>();

  constructor(cdp: Pick<CdpSession, "send">) {
    this.#cdp = cdp;
  }

  /**
   * Presses a key, or repeats a held key. `keyValue` is `KeyboardEvent.key`, by default according to whether Shift is
   * held.
   */
  down(key: Key, keyValue = this.#has("Shift") ? key.shifted : key.plain): Promise<unknown> {
    const autoRepeat = this.#held.has(key.code);
    this.#held.set(key.code, key);
    const text = this.#modifiers & commanding ? "" : textOf(keyValue);
    return this.#cdp.send("Input.dispatchKeyEvent", {
      ...this.#describe(key, keyValue),
      type: text === "" ? "rawKeyDown" : "keyDown",
      text,
      unmodifiedText: text,
      autoRepeat,
    });
  }

  up(key: Key, keyValue = this.#has("Shift") ? key.shifted : key.plain): Promise<unknown> {
    this.#held.delete(key.code);
    return this.#cdp.send("Input.dispatchKeyEvent", { ...this.#describe(key, keyValue), type: "keyUp" });
  }

  /** Releases all held keys, for example when control is lost. */
  cancel(): void {
    for (const key of [...this.#held.values()].toReversed()) {
      // Errors are ignored, because the page may be gone.
      this.up(key).catch(() => undefined);
    }
  }

  /** Presses and releases a key with modifiers held. */
  press(key: Key, modifiers: readonly Modifier[] = [], keyValue?: string): Promise<unknown> {
    const others = modifiers.map((modifier) => modifierKeys[modifier]).filter(({ code }) => !this.#held.has(code));
    return Promise.all([
      ...others.map((other) => this.down(other)),
      this.down(key, keyValue),
      this.up(key, keyValue),
      ...others.toReversed().map((other) => this.up(other)),
    ]);
  }

  /** Inserts text that no key produces, as an input method does: pages receive the key `Process`. */
  compose(text: string): Promise<unknown> {
    return Promise.all([
      this.#cdp.send("Input.dispatchKeyEvent", { ...processed, type: "rawKeyDown" }),
      this.insert(text),
      this.#cdp.send("Input.dispatchKeyEvent", { ...processed, type: "keyUp" }),
    ]);
  }

  /** Shows the current composition of an input method. The selection is in UTF-16 units. */
  setComposition(text: string, selectionStart: number, selectionEnd: number): Promise<unknown> {
    return this.#cdp.send("Input.imeSetComposition", { text, selectionStart, selectionEnd });
  }

  /** Inserts a whole text without key events. */
  insert(text: string): Promise<unknown> {
    return this.#cdp.send("Input.insertText", { text });
  }

  #has(modifier: Modifier): boolean {
    return (this.#modifiers & modifierBits[modifier]) !== 0;
  }

  get #modifiers(): number {
    let bits = 0;
    for (const { plain } of this.#held.values()) bits |= isModifier(plain) ? modifierBits[plain] : 0;
    return bits;
  }

  #describe({ code, keyCode, location }: Key, key: string) {
    const modifiers = this.#modifiers;
    return { code, key, windowsVirtualKeyCode: keyCode, location, isKeypad: location === 3, modifiers };
  }
}

function textOf(keyValue: string): string {
  if (keyValue === "Enter") return "\r";
  return keyValue.length === 1 ? keyValue : "";
}

import type { CdpSession } from "../cdp/cdp-session.ts";
import { isModifier, type Key, type Modifier, modifierKeys } from "./keys.ts";

/** How the protocol says what is held. */
const modifierBits: Readonly<Record<Modifier, number>> = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

/** Keys that turn others into commands: nothing is typed while one of them is held. */
const commanding = modifierBits.Alt | modifierBits.Control | modifierBits.Meta;

/** The key code that pages see of a key which an input method has taken. */
const processed = { key: "Process", windowsVirtualKeyCode: 229 };

/**
 * The keyboard of a page. Each promise resolves when the page has handled the key; they are handled in the order in
 * which they were sent, so that nobody needs to wait for one before sending the next.
 */
export class Keyboard {
  readonly #cdp: Pick<CdpSession, "send">;
  /** By their codes. */
  readonly #held = new Map<string, Key>();

  constructor(cdp: Pick<CdpSession, "send">) {
    this.#cdp = cdp;
  }

  /** Presses a key, or repeats one that is held; it makes what it does beside the keys that are held, unless `made` is given. */
  down(key: Key, made = this.#has("Shift") ? key.shifted : key.plain): Promise<unknown> {
    const autoRepeat = this.#held.has(key.code);
    this.#held.set(key.code, key);
    const text = this.#modifiers & commanding ? "" : textOf(made);
    return this.#cdp.send("Input.dispatchKeyEvent", {
      ...this.#describe(key, made),
      type: text === "" ? "rawKeyDown" : "keyDown",
      text,
      unmodifiedText: text,
      autoRepeat,
    });
  }

  up(key: Key, made = this.#has("Shift") ? key.shifted : key.plain): Promise<unknown> {
    this.#held.delete(key.code);
    return this.#cdp.send("Input.dispatchKeyEvent", { ...this.#describe(key, made), type: "keyUp" });
  }

  /** Releases all keys that are held, as when who holds them may not any more. Does nothing without any. */
  cancel(): void {
    for (const key of [...this.#held.values()].toReversed()) {
      // A page that does not answer has nothing to say about it.
      this.up(key).catch(() => undefined);
    }
  }

  /** Presses and releases a key with others held. */
  press(key: Key, modifiers: readonly Modifier[] = [], made?: string): Promise<unknown> {
    const others = modifiers.map((modifier) => modifierKeys[modifier]).filter(({ code }) => !this.#held.has(code));
    return Promise.all([
      ...others.map((other) => this.down(other)),
      this.down(key, made),
      this.up(key, made),
      ...others.toReversed().map((other) => this.up(other)),
    ]);
  }

  /** Puts in what no key makes, the way that an input method does: under a key which the page cannot tell. */
  compose(text: string): Promise<unknown> {
    return Promise.all([
      this.#cdp.send("Input.dispatchKeyEvent", { ...processed, type: "rawKeyDown" }),
      this.insert(text),
      this.#cdp.send("Input.dispatchKeyEvent", { ...processed, type: "keyUp" }),
    ]);
  }

  /** Shows what an input method has composed so far; the selection is in UTF-16 units. */
  draft(text: string, selectionStart: number, selectionEnd: number): Promise<unknown> {
    return this.#cdp.send("Input.imeSetComposition", { text, selectionStart, selectionEnd });
  }

  /** Puts a text in at once, without a key. */
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

function textOf(made: string): string {
  if (made === "Enter") return "\r";
  return made.length === 1 ? made : "";
}

import type { Keyboard } from "./keyboard.ts";
import { type FoundKey, findKey } from "./keys.ts";

/** One key press, or one text that no key produces. */
export type KeyPress = FoundKey | { readonly text: string };

const segmenter = new Intl.Segmenter();

/** Yields the key presses for a text, one per grapheme. */
export function* keyPressesOf(text: string): Generator<KeyPress> {
  for (const { segment } of segmenter.segment(text)) yield findKey(segment) ?? { text: segment };
}

/**
 * Presses and releases a key, or composes a text that no key produces. Resolves when the page has handled all events.
 */
export function dispatchKeyPress(keyboard: Keyboard, keyPress: KeyPress): Promise<unknown> {
  if ("text" in keyPress) return keyboard.compose(keyPress.text);
  return keyboard.press(keyPress.key, keyPress.withShift ? ["Shift"] : []);
}

/** Whether a text is one grapheme. */
export function isOneCharacter(text: string): boolean {
  return [...segmenter.segment(text)].length === 1;
}

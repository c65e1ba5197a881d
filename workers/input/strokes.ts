import type { Keyboard } from "./keyboard.ts";
import { type FoundKey, findKey } from "./keys.ts";

/** One thing that a person does at a keyboard: hits a key, or puts in what no key makes. */
export type Stroke = FoundKey | { readonly text: string };

const segmenter = new Intl.Segmenter();

/** Gives the strokes that make a text, one for each of its characters. */
export function* strokesOf(text: string): Generator<Stroke> {
  for (const { segment } of segmenter.segment(text)) yield findKey(segment) ?? { text: segment };
}

/** Makes a stroke; resolves when the page has handled it. */
export function strike(keyboard: Keyboard, stroke: Stroke): Promise<unknown> {
  if ("text" in stroke) return keyboard.compose(stroke.text);
  return keyboard.press(stroke.key, stroke.withShift ? ["Shift"] : []);
}

/** Whether a text is one character, as a person counts. */
export function isOneCharacter(text: string): boolean {
  return [...segmenter.segment(text)].length === 1;
}

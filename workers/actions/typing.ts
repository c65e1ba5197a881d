import type { Locator } from "playwright-core";
import type { Key, Type } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { messageOf } from "./browser-failure.ts";
import { limits, type Scene } from "./scene.ts";
import { locateVisible } from "./selectors.ts";

/** How often an element that cannot take text yet is looked at again. */
const pollMs = 50;

/** Types text into an element or into whatever has the focus: at once, or key by key when there is a delay. */
export async function typeText(scene: Scene, request: Type): Promise<void> {
  const { page, progress } = scene;
  const { selector, frame, text, clear, delayMs = 0 } = request;
  if (clear && selector === undefined) throw failFields("validation-failed", { "action.clear": "needs a selector" });
  if (selector !== undefined) {
    const element = locateVisible(page, { selector, frame, path: "action" });
    if (clear && delayMs === 0) return element.fill(text, limits(scene));
    if (clear) await element.fill("", limits(scene));
    else await focusForTyping(scene, element);
  }
  // A limit of a typing that takes 100,000 keys is the command's own.
  await progress.race(delayMs === 0 ? page.keyboard.insertText(text) : page.keyboard.type(text, { delay: delayMs }));
}

/** Presses and releases one key, with others held. */
export async function pressKey({ page, progress }: Scene, { key, modifiers }: Key): Promise<void> {
  const isOneCharacter = [...key].length === 1;
  try {
    await progress.race(page.keyboard.press([...modifiers, key].join("+")));
  } catch (thrown) {
    if (!messageOf(thrown).includes("Unknown key")) throw thrown;
    // A character that no key of the layout makes, such as é, arrives as it does from an input method.
    if (!isOneCharacter || modifiers.length > 0)
      throw failFields("validation-failed", { "action.key": "is not a key" });
    await progress.race(page.keyboard.insertText(key));
  }
}

/** Gives an element the focus with the caret behind what it holds, once it can take text. */
async function focusForTyping({ progress }: Scene, element: Locator): Promise<void> {
  let hindrance = "";
  while (!progress.signal.aborted) {
    hindrance = await element.evaluate(takeFocus, undefined, limits({ progress }));
    if (hindrance === "") return;
    if (progress.remaining() <= pollMs) break;
    await progress.race(new Promise((resolve) => setTimeout(resolve, pollMs)));
  }
  throw fail("session-timeout", {}, { detail: `the element ${hindrance}` });
}

/** Runs in the page: focuses the element, or says why it cannot take text. */
function takeFocus(element: Element): string {
  if (!(element instanceof HTMLElement)) return "takes no text";
  if (element.matches(":disabled")) return "is disabled";
  const isField = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
  if (!isField && !element.isContentEditable) return "takes no text";
  if (isField && element.readOnly) return "is read-only";
  const root = element.getRootNode();
  const hasFocus = () => (root instanceof Document || root instanceof ShadowRoot) && root.activeElement === element;
  if (!hasFocus()) {
    element.focus();
    if (isField && element.selectionStart !== null)
      element.setSelectionRange(element.value.length, element.value.length);
    if (!isField) getSelection()?.selectAllChildren(element);
    if (!isField) getSelection()?.collapseToEnd();
  }
  return hasFocus() ? "" : "does not take the focus";
}

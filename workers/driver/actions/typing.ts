import { setTimeout as delay } from "node:timers/promises";
import type { Key, Type } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { counted } from "../../../src/platform/counted.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { dispatchKeyPress, isOneCharacter, keyPressesOf } from "../../input/key-presses.ts";
import type { Keyboard } from "../../input/keyboard.ts";
import { deleteKey, findKey, isModifier } from "../../input/keys.ts";
import { inputOf } from "../../input/page-input.ts";
import type { Progress } from "../../pages/progress.ts";
import { browserFailure } from "./browser-failure.ts";
import { aimOf, checkTime, type Scene } from "./scene.ts";
import { assertTakes, putSecret, readParts } from "./secret-typing.ts";
import { readyForText } from "./text-receiver.ts";

/**
 * Answer delay in milliseconds up to which a page counts as quick. A slower page receives fewer keys ahead, since it
 * would still handle them after the command has ended.
 */
const backlogMs = 50;

/** Most characters in flight. More do not speed up any page. */
const maxAhead = 16;

/** Characters in flight at first. One at a time costs 10 % more CPU; many overload a slow page. */
const firstAhead = 4;

/** Types a text into an element, by default the focused element. */
export async function typeText(scene: Scene, request: Type): Promise<void> {
  const { progress, sessionPage } = scene;
  const { text, clear, insert, delayMs = 0 } = request;
  const aim = aimOf(scene, request, "action");
  if (clear && !aim) throw failFields("validation-failed", { "action.clear": "needs a selector or a ref" });
  const parts = readParts(text, scene.secrets);
  const hasSecrets = parts.some((part) => typeof part !== "string");
  const isSet = aim && (await readyForText(scene, aim, { text: hasSecrets ? "" : text, clear })) === "set";
  if (isSet && !hasSecrets) return;
  if (hasSecrets) await assertTakes(scene, parts);
  const { keyboard } = inputOf(sessionPage.cdp);
  checkTime(progress);
  // The old text is selected, so this key deletes it. The page handles input in order, so the key is not awaited first.
  const emptied = clear ? keyboard.press(deleteKey).catch(() => undefined) : undefined;
  const write = (part: string) => (insert ? keyboard.insert(part) : typeKeys(progress, keyboard, part, delayMs));
  if (!hasSecrets) {
    await progress.race(Promise.all([emptied, write(text)]));
    return;
  }
  await progress.race(Promise.resolve(emptied));
  for (const part of parts) await progress.race(typeof part === "string" ? write(part) : putSecret(scene, part));
}

/** Presses and releases one key with modifiers held. */
export async function pressKey({ progress, sessionPage }: Scene, { key, modifiers }: Key): Promise<void> {
  const found = findKey(key);
  if (!found && (modifiers.length > 0 || !isOneCharacter(key)))
    throw failFields("validation-failed", { "action.key": "is not a key" });
  const { keyboard } = inputOf(sessionPage.cdp);
  checkTime(progress);
  const pressed = found
    ? keyboard.press(found.key, modifiers.filter(isModifier), found.withShift ? key : undefined)
    : keyboard.compose(key);
  await progress.race(pressed);
}

/** Sends the keys of a text. Quick pages receive several keys in flight. */
async function typeKeys(progress: Progress, keyboard: Keyboard, text: string, delayMs: number): Promise<void> {
  const sent: { readonly at: number; readonly answer: Promise<unknown> }[] = [];
  let ahead = delayMs > 0 ? 1 : firstAhead;
  let typed = 0;
  const awaitUntil = async (left: number) => {
    for (let oldest = sent[0]; oldest && sent.length > left; oldest = sent[0]) {
      await progress.race(oldest.answer);
      sent.shift();
      typed += 1;
      const isQuick = performance.now() - oldest.at < backlogMs;
      ahead = isQuick && delayMs === 0 ? Math.min(ahead * 2, maxAhead) : Math.max(ahead >> 1, 1);
    }
  };
  const keyPresses = [...keyPressesOf(text)];
  const sendAll = async () => {
    for (const [index, keyPress] of keyPresses.entries()) {
      // A closing page may not acknowledge keys that it handled. Therefore all earlier keys are awaited before the last
      // key.
      await awaitUntil(index === keyPresses.length - 1 ? 0 : ahead - 1);
      if (delayMs > 0 && typed > 0) await progress.race(delay(delayMs));
      if (progress.isOver) {
        await awaitUntil(0);
        throw fail(
          "session-timeout",
          {},
          {
            detail: `only the first ${counted(typed, "character")} could be typed in time: look at the field before you continue`,
          },
        );
      }
      const answer = dispatchKeyPress(keyboard, keyPress);
      // Prevents an unhandled rejection: if an earlier key fails, this answer is never awaited.
      answer.catch(() => undefined);
      sent.push({ at: performance.now(), answer });
    }
  };
  // Only the last key may close the page: after an earlier key the text is incomplete.
  await sendAll().catch((thrown) => Promise.reject(browserFailure(thrown)));
  await awaitUntil(0);
}

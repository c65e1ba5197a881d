import { setTimeout as delay } from "node:timers/promises";
import type { Key, Type } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { Keyboard } from "../../input/keyboard.ts";
import { deleteKey, findKey, isModifier } from "../../input/keys.ts";
import { inputOf } from "../../input/page-input.ts";
import { isOneCharacter, strike, strokesOf } from "../../input/strokes.ts";
import type { Progress } from "../../pages/progress.ts";
import { browserFailure } from "./browser-failure.ts";
import { aimOf, checkTime, type Scene } from "./scene.ts";
import { assertTakes, putSecret, readParts } from "./secret-typing.ts";
import { readyForText } from "./text-receiver.ts";

/**
 * How far a page may be behind with the keys that it was sent: it goes on with them when their command is over. Each key
 * of a page that is further behind waits for the one before it.
 */
const backlogMs = 50;

/** So many characters are sent ahead at the most; more make no page faster. */
const mostAhead = 16;

/** So many before a page has shown how quick it is: one costs a tenth more CPU, many are a burden to a slow page. */
const firstAhead = 4;

/** Types a text into an element or into whatever has the focus. */
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
  // What there was is selected. The page handles what it is sent in that order, and what it cannot be sent, not at all.
  const emptied = clear ? keyboard.press(deleteKey).catch(() => undefined) : undefined;
  const write = (part: string) => (insert ? keyboard.insert(part) : typeKeys(progress, keyboard, part, delayMs));
  if (!hasSecrets) {
    await progress.race(Promise.all([emptied, write(text)]));
    return;
  }
  await progress.race(Promise.resolve(emptied));
  for (const part of parts) await progress.race(typeof part === "string" ? write(part) : putSecret(scene, part));
}

/** Presses and releases one key, with others held. */
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

/** Sends the keys that make a text, some of them ahead while the page handles them quickly. */
async function typeKeys(progress: Progress, keyboard: Keyboard, text: string, delayMs: number): Promise<void> {
  const sent: { readonly at: number; readonly answer: Promise<unknown> }[] = [];
  let ahead = delayMs > 0 ? 1 : firstAhead;
  let typed = 0;
  const hearUntil = async (left: number) => {
    for (let oldest = sent[0]; oldest && sent.length > left; oldest = sent[0]) {
      await progress.race(oldest.answer);
      sent.shift();
      typed += 1;
      const isQuick = performance.now() - oldest.at < backlogMs;
      ahead = isQuick && delayMs === 0 ? Math.min(ahead * 2, mostAhead) : Math.max(ahead >> 1, 1);
    }
  };
  const strokes = [...strokesOf(text)];
  const sendAll = async () => {
    for (const [index, stroke] of strokes.entries()) {
      // A page that closes may leave keys unanswered that it has handled: those before the last one are answered first.
      await hearUntil(index === strokes.length - 1 ? 0 : ahead - 1);
      if (delayMs > 0 && typed > 0) await progress.race(delay(delayMs));
      if (progress.isOver) {
        await hearUntil(0);
        throw fail("session-timeout", {}, { detail: `the first ${typed} characters were typed in time` });
      }
      const answer = strike(keyboard, stroke);
      // Nobody waits for it when one before it fails.
      answer.catch(() => undefined);
      sent.push({ at: performance.now(), answer });
    }
  };
  // A page may close by the last key; by one before that it is not typed.
  await sendAll().catch((thrown) => Promise.reject(browserFailure(thrown)));
  await hearUntil(0);
}

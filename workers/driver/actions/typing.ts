import { setTimeout as delay } from "node:timers/promises";
import type { Fill, Key, Type } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { counted } from "../../../src/platform/counted.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { dispatchKeyPress, isOneCharacter, keyPressesOf } from "../../input/key-presses.ts";
import type { Keyboard } from "../../input/keyboard.ts";
import { deleteKey, findKey, isModifier } from "../../input/keys.ts";
import { inputOf } from "../../input/page-input.ts";
import type { Progress } from "../../pages/progress.ts";
import { callPage } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import { browserFailure } from "./browser-failure.ts";
import { aimOf, checkTime, neededAim, type Scene } from "./scene.ts";
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

type Write = (part: string) => Promise<unknown>;

/** Types a text into an element, by default the focused element. */
export function typeText(scene: Scene, request: Type): Promise<void> {
  const { clear, insert, selector, ref, delayMs = 0 } = request;
  if (clear && !selector && ref === undefined)
    throw failFields("validation-failed", { "action.clear": "needs a selector or a ref" });
  const { keyboard } = inputOf(scene.sessionPage.cdp);
  return enterText(scene, request, (part) =>
    insert ? keyboard.insert(part) : typeKeys(scene.progress, keyboard, part, delayMs),
  );
}

/** Replaces the text of a field. Line breaks and tabs are inserted, because Enter and Tab may leave the field. */
export function fill(scene: Scene, request: Fill): Promise<void> {
  const { keyboard } = inputOf(scene.sessionPage.cdp);
  const aim = neededAim(scene, request, "action");
  return enterText(scene, { ...request, clear: true }, async (part) => {
    for (const run of part.split(/([\n\r\t]+)/).filter(Boolean)) {
      if (!/[\n\r\t]/.test(run)) await typeKeys(scene.progress, keyboard, run, 0);
      else
        await reachElement(scene, { ...aim, selector: ":root" }, async ({ inner }) => ({
          value: await callPage(scene, inner, "insertText", run.replace(/\r\n?/g, "\n")),
        }));
    }
  });
}

async function enterText(
  scene: Scene,
  request: Pick<Type, "selector" | "frame" | "ref" | "text" | "clear">,
  write: Write,
): Promise<void> {
  const { progress, sessionPage } = scene;
  const { text, clear } = request;
  const aim = aimOf(scene, request, "action");
  const parts = readParts(text, scene.secrets);
  const hasSecrets = parts.some((part) => typeof part !== "string");
  const isSet = aim && (await readyForText(scene, aim, { text: hasSecrets ? "" : text, clear })) === "set";
  if (isSet && !hasSecrets) return;
  if (hasSecrets) await assertTakes(scene, parts);
  const { keyboard } = inputOf(sessionPage.cdp);
  checkTime(progress);
  // The old text is selected, so this key deletes it. The page handles input in order, so the key is not awaited first.
  const emptied = clear ? keyboard.press(deleteKey).catch(() => undefined) : undefined;
  if (!hasSecrets) {
    await progress.race(Promise.all([emptied, write(text)]));
    return;
  }
  await progress.race(Promise.resolve(emptied));
  for (const part of parts) await progress.race(typeof part === "string" ? write(part) : putSecret(scene, part));
}

/** Presses and releases one key with modifiers held, in an element if the request names one. */
export async function pressKey(scene: Scene, request: Key): Promise<void> {
  const { progress, sessionPage } = scene;
  const { key, modifiers } = request;
  const found = findKey(key);
  if (!found && (modifiers.length > 0 || !isOneCharacter(key)))
    throw failFields("validation-failed", { "action.key": "is not a key" });
  const aim = aimOf(scene, request, "action");
  if (aim)
    await reachElement(scene, aim, ({ inner }, timeoutMs) =>
      callPage(scene, inner, "focusElement", { selector: aim.selector, timeoutMs, isEnabled: true }),
    );
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

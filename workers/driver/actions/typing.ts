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
import { checkTime, locatorOf, requiredLocator, type Scene } from "./scene.ts";
import { assertAllowedOrigin, insertSecret, splitPlaceholders } from "./secret-typing.ts";
import { prepareForText } from "./text-receiver.ts";

/**
 * Response time to a key in milliseconds below which a page counts as quick. A slower page gets fewer keys in flight,
 * because it would still handle them after the command has ended.
 */
const backlogMs = 50;

/** Maximum number of characters in flight. More do not speed up any page. */
const maxAhead = 16;

/** Initial number of characters in flight. One at a time costs 10 % more CPU; many overload a slow page. */
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

/**
 * Replaces the text of a field. Line breaks and tabs are inserted without key events, because the keys Enter and Tab
 * may leave the field.
 */
export function fill(scene: Scene, request: Fill): Promise<void> {
  const { keyboard } = inputOf(scene.sessionPage.cdp);
  const locator = requiredLocator(scene, request, "action");
  return enterText(scene, { ...request, clear: true }, async (part) => {
    for (const run of part.split(/([\n\r\t]+)/).filter(Boolean)) {
      if (!/[\n\r\t]/.test(run)) await typeKeys(scene.progress, keyboard, run, 0);
      else
        await reachElement(scene, { ...locator, selector: ":root" }, async ({ inner }) => ({
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
  const locator = locatorOf(scene, request, "action");
  const parts = splitPlaceholders(text, scene.secrets);
  const hasSecrets = parts.some((part) => typeof part !== "string");
  const isSet = locator && (await prepareForText(scene, locator, { text: hasSecrets ? "" : text, clear })) === "set";
  if (isSet && !hasSecrets) return;
  if (hasSecrets) await assertAllowedOrigin(scene, parts);
  const { keyboard } = inputOf(sessionPage.cdp);
  checkTime(progress);
  // The old text is selected, so the Delete key removes it. Pages handle input in order, so literal text is sent
  // without waiting for this key.
  const emptied = clear ? keyboard.press(deleteKey).catch(() => undefined) : undefined;
  if (!hasSecrets) {
    await progress.race(Promise.all([emptied, write(text)]));
    return;
  }
  await progress.race(Promise.resolve(emptied));
  for (const part of parts) await progress.race(typeof part === "string" ? write(part) : insertSecret(scene, part));
}

/** Presses and releases one key with modifiers held. If the request names an element, focuses the element first. */
export async function pressKey(scene: Scene, request: Key): Promise<void> {
  const { progress, sessionPage } = scene;
  const { key, modifiers } = request;
  const found = findKey(key);
  if (!found && (modifiers.length > 0 || !isOneCharacter(key)))
    throw failFields("validation-failed", {
      "action.key": "must be a key name such as `Enter`, or one character without modifiers",
    });
  const locator = locatorOf(scene, request, "action");
  if (locator)
    await reachElement(scene, locator, ({ inner }, timeoutMs) =>
      callPage(scene, inner, "focusElement", { selector: locator.selector, timeoutMs, isEnabled: true }),
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
      // If the last key closes the page, the page may not acknowledge earlier keys. All earlier keys are therefore
      // awaited before the last key is sent.
      await awaitUntil(index === keyPresses.length - 1 ? 0 : ahead - 1);
      if (delayMs > 0 && typed > 0) await progress.race(delay(delayMs));
      if (progress.isOver) {
        await awaitUntil(0);
        throw fail(
          "session-timeout",
          {},
          {
            detail: `only the first ${counted(typed, "character")} could be typed in time: observe the field before you continue`,
          },
        );
      }
      const answer = dispatchKeyPress(keyboard, keyPress);
      // Prevents an unhandled rejection: if an earlier key fails, this answer is never awaited.
      answer.catch(() => undefined);
      sent.push({ at: performance.now(), answer });
    }
  };
  // An error of an earlier key means that the text is incomplete. The last key may close the page, so its error is
  // handled by the caller.
  await sendAll().catch((thrown) => Promise.reject(browserFailure(thrown)));
  await awaitUntil(0);
}

import { setTimeout as delay } from "node:timers/promises";
import { ElementState, type UrlCondition, type WaitRequest } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { crashedFailure } from "../../pages/tab.ts";
import { type Presence, waitForElement, waitForText } from "../elements/element-wait.ts";
import { callPage, DocumentReplaced, mainFrame } from "../elements/page-world.ts";
import { browserFailure } from "./browser-failure.ts";
import { loadStateOf, waitForLoadState } from "./navigate.ts";
import type { Scene } from "./scene.ts";
import { urlGlob } from "./url-glob.ts";

/** Maximum characters of an address in an error message. */
const maxAddress = 500;

/** Milliseconds without changes after which a document is idle. */
const idleMs = 500;
/** Part of the timeout in milliseconds that is left for the page's response to arrive. */
const answerMs = 100;

type Condition = WaitRequest["condition"];

export async function waitFor(scene: Scene, condition: Condition): Promise<void> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  try {
    await waitForCondition(scene, condition);
  } catch (thrown) {
    throw browserFailure(thrown);
  }
}

async function waitForCondition(scene: Scene, condition: Condition): Promise<void> {
  const { progress, sessionPage } = scene;
  switch (condition.case) {
    case "selector": {
      const { selector, frame, state } = condition.value;
      return waitForElement(scene, { selector, frame, path: "condition" }, presences[state] ?? "visible");
    }
    case "url":
      return waitForAddress(scene, condition.value);
    case "loadState":
      return waitForLoadState(sessionPage, loadStateOf(condition.value.state), progress);
    case "text":
      return waitForText(scene, condition.value.text, condition.value.frame, maskOf(scene));
    case "networkIdle":
      await waitForLoadState(sessionPage, "load", progress);
      return sessionPage.traffic.idle(progress);
    case "documentIdle":
      await waitForLoadState(sessionPage, "load", progress);
      return waitForDocument(scene);
    case undefined:
      throw failFields("validation-failed", { condition: "is required" });
  }
}

/**
 * Returns the mask of the session's secrets, if any. Without the mask, a client could probe a secret by waiting for its
 * text.
 */
function maskOf({ secrets }: Scene): ((text: string) => string) | undefined {
  const mask = secrets.textMask();
  return mask && ((text) => mask.apply(text));
}

/**
 * Waits until the document has not changed for `idleMs`. If the document is replaced, waits for the new document.
 * Throws `session-timeout` if the documents keep changing.
 */
async function waitForDocument(scene: Scene): Promise<void> {
  const { progress } = scene;
  while (progress.remaining() > idleMs) {
    const timeoutMs = Math.max(1, progress.remaining() - answerMs);
    try {
      if (await callPage(scene, mainFrame(scene), "quiet", { quietMs: idleMs, timeoutMs })) return;
    } catch (thrown) {
      if (!(thrown instanceof DocumentReplaced)) throw thrown;
      await progress.race(delay(20));
    }
  }
  throw fail(
    "session-timeout",
    {},
    { detail: "the document kept changing until the timeout: wait for a selector instead" },
  );
}

async function waitForAddress(scene: Scene, { pattern }: UrlCondition): Promise<void> {
  const { progress, sessionPage } = scene;
  const { tab } = sessionPage;
  const matches = urlGlob(pattern);
  const mask = maskOf(scene);
  const check = () => {
    tab.assertOpen();
    return matches(mask?.(tab.url) ?? tab.url) || undefined;
  };
  if (await tab.changes.until(check, progress)) return;
  const address = (mask?.(tab.url) ?? tab.url).slice(0, maxAddress);
  const detail = `expected the page's address to match ${pattern} (* matches no /, ** does), got ${address} at the timeout`;
  throw fail("session-timeout", {}, { detail });
}

const presences: Readonly<Record<number, Presence>> = {
  [ElementState.HIDDEN]: "hidden",
  [ElementState.ATTACHED]: "attached",
  [ElementState.DETACHED]: "detached",
};

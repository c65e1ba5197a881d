import { ElementState, type WaitRequest } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { type Presence, waitForElement, waitForText } from "../elements/wait.ts";
import { browserFailure, crashedFailure, isTimeout } from "./browser-failure.ts";
import { loadStateOf } from "./navigate.ts";
import { limits, type Scene } from "./scene.ts";
import { urlGlob } from "./url-glob.ts";

type Condition = WaitRequest["condition"];

/** Resolves when the condition holds. */
export async function waitFor(scene: Scene, condition: Condition): Promise<void> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  try {
    await hold(scene, condition);
  } catch (thrown) {
    if (isTimeout(thrown)) throw fail("session-timeout", {}, { detail: unmet(condition), cause: thrown });
    throw browserFailure(thrown);
  }
}

async function hold(scene: Scene, condition: Condition): Promise<void> {
  const { page, progress, sessionPage } = scene;
  switch (condition.case) {
    case "selector": {
      const { selector, frame, state } = condition.value;
      return waitForElement(scene, { selector, frame, path: "condition" }, presences[state] ?? "visible");
    }
    case "url": {
      const matches = urlGlob(condition.value.pattern);
      return page.waitForURL(({ href }) => matches(href), { ...limits(scene), waitUntil: "commit" });
    }
    case "loadState": {
      const state = loadStateOf(condition.value.state);
      // A page always shows some document that has begun to arrive.
      return state === "commit" ? undefined : page.waitForLoadState(state, limits(scene));
    }
    case "text":
      return waitForText(scene, condition.value.text, condition.value.frame);
    case "networkIdle":
      await page.waitForLoadState("load", limits(scene));
      return sessionPage.traffic.idle(progress);
    case undefined:
      throw failFields("validation-failed", { condition: "is required" });
  }
}

const presences: Readonly<Record<number, Presence>> = {
  [ElementState.HIDDEN]: "hidden",
  [ElementState.ATTACHED]: "attached",
  [ElementState.DETACHED]: "detached",
};

function unmet(condition: Condition): string {
  switch (condition.case) {
    case "url":
      return "the address of the page did not match within the timeout";
    case "networkIdle":
      return "the network did not become idle within the timeout";
    default:
      return "the page has not loaded within the timeout";
  }
}

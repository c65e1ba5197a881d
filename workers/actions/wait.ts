import type { Locator } from "playwright-core";
import { ElementState, type SelectorCondition, type WaitRequest } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { crashedFailure, elementFailure, isTimeout } from "./browser-failure.ts";
import { loadStateOf } from "./navigate.ts";
import { limits, type Scene } from "./scene.ts";
import { locateFirst, locateVisible } from "./selectors.ts";
import { urlGlob } from "./url-glob.ts";

type Condition = WaitRequest["condition"];

/** Resolves when the condition holds. */
export async function waitFor(scene: Scene, condition: Condition): Promise<void> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  try {
    await hold(scene, condition);
  } catch (thrown) {
    if (isTimeout(thrown)) throw fail("session-timeout", {}, { detail: unmet(condition), cause: thrown });
    const aims = condition.case === "selector" ? [{ ...condition.value, path: "condition" }] : [];
    throw await elementFailure(thrown, scene.page, aims);
  }
}

async function hold(scene: Scene, condition: Condition): Promise<void> {
  const { page, progress, sessionPage } = scene;
  switch (condition.case) {
    case "selector":
      return waitForElement(scene, condition.value);
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
      return attached(scene, page.getByText(condition.value.text).filter({ visible: true }).first());
    case "networkIdle":
      await page.waitForLoadState("load", limits(scene));
      return sessionPage.traffic.idle(progress);
    case undefined:
      throw failFields("validation-failed", { condition: "is required" });
  }
}

function waitForElement(scene: Scene, { selector, frame, state }: SelectorCondition): Promise<void> {
  const aim = { selector, frame, path: "condition" };
  switch (state) {
    case ElementState.ATTACHED:
      return attached(scene, locateFirst(scene.page, aim));
    case ElementState.DETACHED:
      return locateFirst(scene.page, aim).waitFor({ ...limits(scene), state: "detached" });
    case ElementState.HIDDEN:
      return locateVisible(scene.page, aim).waitFor({ ...limits(scene), state: "detached" });
    default:
      return attached(scene, locateVisible(scene.page, aim));
  }
}

function attached(scene: Scene, element: Locator): Promise<void> {
  return element.waitFor({ ...limits(scene), state: "attached" });
}

const elementStates: Readonly<Record<number, string>> = {
  [ElementState.HIDDEN]: "hidden",
  [ElementState.ATTACHED]: "attached",
  [ElementState.DETACHED]: "detached",
};

function unmet(condition: Condition): string {
  switch (condition.case) {
    case "selector":
      return `the element did not become ${elementStates[condition.value.state] ?? "visible"} within the timeout`;
    case "url":
      return "the address of the page did not match within the timeout";
    case "text":
      return "the text did not appear within the timeout";
    case "networkIdle":
      return "the network did not become idle within the timeout";
    default:
      return "the page has not loaded within the timeout";
  }
}

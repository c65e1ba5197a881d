import { create } from "@bufbuild/protobuf";
import { type Check, TapSchema, type Uncheck } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { CheckState } from "../../injected/page-check.ts";
import type { Locator } from "../elements/locator.ts";
import { callPage } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import { requiredLocator, type Scene } from "./scene.ts";
import { tap } from "./tap.ts";

/** Maximum number of taps. A control with three states may need two taps to reach the requested state. */
const maxTaps = 2;

/**
 * Checks a checkbox, radio button or switch. Returns the title from the last `tap`. Undefined if no tap was needed, or
 * if a tap started a navigation or closed the page.
 */
export function check(scene: Scene, request: Check): Promise<string | undefined> {
  return toggle(scene, request, "checked");
}

/** Unchecks a checkbox or switch. Returns the same as `check`. */
export function uncheck(scene: Scene, request: Uncheck): Promise<string | undefined> {
  return toggle(scene, request, "unchecked");
}

async function toggle(
  scene: Scene,
  request: Check | Uncheck,
  wanted: CheckState["checked"],
): Promise<string | undefined> {
  const { selector, frame, ref } = request;
  const locator = requiredLocator(scene, request, "action");
  let state = await readState(scene, locator, wanted);
  const { tab } = scene.sessionPage;
  for (let taps = 0; state.checked !== wanted; taps += 1) {
    if (taps === maxTaps) {
      const detail = `expected the control to be \`${wanted}\`, got \`${state.checked}\` after ${taps} taps: observe the page`;
      throw fail("conflict", {}, { detail });
    }
    const { requested, started } = tab;
    const title = await tap(scene, create(TapSchema, { frame, ...(ref === undefined ? { selector } : { ref }) }));
    const before = state;
    const changed = reachElement(scene, locator, ({ inner }, timeoutMs) =>
      callPage(scene, inner, "waitForCheckChange", { selector: locator.selector, timeoutMs }, before),
    );
    // The tap may submit a form or close the page, after which the control has no state.
    const isLeaving = () => tab.requested > requested || tab.started > started || tab.isClosed;
    const after = await tab.changes.before(changed, isLeaving, scene.progress);
    if (!after && isLeaving()) return undefined;
    state = after ?? (await changed);
    if (state.checked === wanted) return title;
  }
  return undefined;
}

/** Returns the state of a control. Throws `validation-failed` if the control can never have the state `wanted`. */
async function readState(scene: Scene, locator: Locator, wanted: CheckState["checked"]): Promise<CheckState> {
  const state = await reachElement(scene, locator, ({ inner }, timeoutMs) =>
    callPage(scene, inner, "checkState", { selector: locator.selector, timeoutMs }),
  );
  const fault = (what: string) => failFields("validation-failed", { "action.selector": what });
  if (!state) throw fault("is not a checkbox, radio button or switch");
  if (state.isRadio && wanted === "unchecked") throw fault("is a radio button: check another one of its group instead");
  return state;
}

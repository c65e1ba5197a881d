import type { Select } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import { callPage } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import { requiredLocator, type Scene } from "./scene.ts";

/** Selects options of a `<select>` once all of them exist: by label if the request has labels, else by value. */
export async function select(scene: Scene, request: Select): Promise<void> {
  const { values, labels } = request;
  const locator = requiredLocator(scene, request, "action");
  const faults = await reachElement(scene, locator, ({ inner }, timeoutMs) => {
    const options = { selector: locator.selector, timeoutMs, isEnabled: true };
    return labels.length > 0
      ? callPage(scene, inner, "chooseLabels", options, labels)
      : callPage(scene, inner, "chooseOptions", options, values);
  });
  if (faults) throw failFields("validation-failed", faults);
}

import { whenReady } from "./page-aim.ts";
import { firstNamed } from "./page-refs.ts";
import * as roles from "./page-role.ts";
import type { ElementOptions, Seen } from "./page-wait.ts";
import { until } from "./page-wait.ts";

/** State of a checkbox, radio button or switch. */
export interface CheckState {
  readonly checked: "checked" | "unchecked" | "mixed";
  readonly isRadio: boolean;
}

/** Returns the state of a control once the control is visible. Null if the element has no such state. */
export function checkState(options: ElementOptions): Promise<Seen<CheckState | null>> {
  return whenReady(options, (element) => ({ value: stateOf(element) ?? null }));
}

/** Returns the state of a control once it differs from an earlier state. */
export function waitForCheckChange(options: ElementOptions, before: CheckState): Promise<Seen<CheckState>> {
  return until(options.timeoutMs, () => {
    // The tap may have changed the control's name, so its current description is not compared with the reference's.
    const element = firstNamed(options.selector);
    const state = element && stateOf(element);
    if (!state)
      return { hindrance: "is gone from the page after it was tapped", isFinal: typeof options.selector !== "string" };
    return state.checked === before.checked
      ? { hindrance: `stayed ${state.checked} when it was tapped` }
      : { value: state };
  });
}

function stateOf(named: Element): CheckState | undefined {
  const element = (named instanceof HTMLLabelElement && named.control) || named;
  if (element instanceof HTMLInputElement && /^(?:checkbox|radio)$/.test(element.type)) {
    const checked = element.indeterminate ? "mixed" : element.checked ? "checked" : "unchecked";
    return { checked, isRadio: element.type === "radio" };
  }
  const role = roles.roleOf(element);
  if (!/^(?:checkbox|radio|switch|menuitemcheckbox|menuitemradio)$/.test(role)) return undefined;
  const given = roles.attribute(element, "aria-checked");
  const checked = given === "mixed" ? "mixed" : given === "true" ? "checked" : "unchecked";
  return { checked, isRadio: role.endsWith("radio") };
}

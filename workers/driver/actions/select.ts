import type { Select } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import type { Seen } from "../../injected/page-wait.ts";
import { useElement } from "../elements/reach.ts";
import { neededAim, type Scene } from "./scene.ts";

/** Faults of the request, by field. */
type Faults = Readonly<Record<string, string>>;

/** Selects options of a `<select>` by value or else by label, once all of them exist. */
export async function select(scene: Scene, request: Select): Promise<void> {
  const { values } = request;
  const aim = neededAim(scene, request, "action");
  const faults = await useElement(scene, aim, { isEnabled: true, act: chooseOptions, args: values });
  if (faults) throw failFields("validation-failed", faults);
}

/** Runs in the page. */
function chooseOptions(element: Element, values: readonly string[]): Seen<Faults | null> {
  const control = element instanceof HTMLLabelElement ? element.control : element;
  if (!(control instanceof HTMLSelectElement)) return { value: { "action.selector": "is not a <select>" } };
  if (values.length > 1 && !control.multiple) {
    return { value: { "action.values": "must be one value: the <select> is not multiple" } };
  }
  const options = [...control.options];
  const chosen = values.map((wanted) => {
    return options.find(({ value }) => value === wanted) ?? options.find(({ label }) => label === wanted);
  });
  if (chosen.includes(undefined) || chosen.some((option) => option?.matches(":disabled"))) {
    const shown = options.slice(0, 20).map((option) => {
      const [value, label] = [option.value, option.label.trim()].map((text) => JSON.stringify(text.slice(0, 40)));
      return `${value}${value === label ? "" : ` (${label})`}${option.matches(":disabled") ? " disabled" : ""}`;
    });
    const fault = chosen.includes(undefined) ? "does not have all of these options" : "disables some of these options";
    const more = options.length > shown.length ? ` and ${options.length - shown.length} more` : "";
    return { hindrance: `${fault}. It has ${shown.join(", ") || "none"}${more}` };
  }
  for (const option of options) {
    if (control.multiple || chosen.includes(option)) option.selected = chosen.includes(option);
  }
  control.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  control.dispatchEvent(new Event("change", { bubbles: true }));
  return { value: null };
}

import { use } from "./page-aim.ts";
import type { ElementOptions, Seen } from "./page-wait.ts";

type Faults = Readonly<Record<string, string>>;

/** Selects options of a `<select>` by value or else by label, once all of them exist. */
export function chooseOptions(elementOptions: ElementOptions, values: readonly string[]): Promise<Seen<Faults | null>> {
  return use(elementOptions, (element) => choose(element, values));
}

function choose(element: Element, values: readonly string[]): Seen<Faults | null> {
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

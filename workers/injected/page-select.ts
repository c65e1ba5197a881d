import { whenReady } from "./page-aim.ts";
import type { ElementOptions, Seen } from "./page-wait.ts";
import { quote } from "./plain-text.ts";

type Faults = Readonly<Record<string, string>>;

/**
 * Selects options of a `<select>` by value, or by label if no value matches, once all the options exist and are
 * enabled.
 */
export function chooseOptions(elementOptions: ElementOptions, values: readonly string[]): Promise<Seen<Faults | null>> {
  return whenReady(elementOptions, (element) => choose(element, values, byValue, "values"));
}

/** Longest wait in milliseconds until options with the labels exist and are enabled. */
const labelMs = 1_000;

/**
 * Selects options of a `<select>` by label. If the options do not appear or are not enabled in time, returns a fault
 * that lists the existing options.
 */
export async function chooseLabels(options: ElementOptions, labels: readonly string[]): Promise<Seen<Faults | null>> {
  const wanted = labels.map((label) => label.trim());
  let endsAt: number | undefined;
  return whenReady(options, (element) => {
    endsAt ??= performance.now() + Math.min(labelMs, options.timeoutMs / 2);
    const byLabel = (options: readonly HTMLOptionElement[], text: string) =>
      options.find((option) => option.label.trim() === text && !option.matches(":disabled")) ??
      options.find((option) => option.label.trim() === text);
    const seen = choose(element, wanted, byLabel, "labels");
    const isLate = "hindrance" in seen && performance.now() >= endsAt;
    return isLate ? { value: { "action.labels": `cannot be chosen: the <select> ${seen.hindrance}` } } : seen;
  });
}

function byValue(options: readonly HTMLOptionElement[], wanted: string): HTMLOptionElement | undefined {
  return options.find(({ value }) => value === wanted) ?? options.find(({ label }) => label === wanted);
}

function choose(
  element: Element,
  wanted: readonly string[],
  find: typeof byValue,
  field: "values" | "labels",
): Seen<Faults | null> {
  const control = element instanceof HTMLLabelElement ? element.control : element;
  if (!(control instanceof HTMLSelectElement)) return { value: { "action.selector": "is not a <select>" } };
  if (wanted.length > 1 && !control.multiple)
    return { value: { [`action.${field}`]: "must have one item: the <select> is not multiple" } };
  const options = [...control.options];
  const chosen = wanted.map((text) => find(options, text));
  if (chosen.includes(undefined) || chosen.some((option) => option?.matches(":disabled"))) {
    const shown = options.slice(0, 20).map((option) => {
      const [value, label] = [option.value, option.label.trim()].map((text) => quote(text, 40));
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

// Functions for form controls, which run in the isolated world of the control's remote object.

export interface ShownOption {
  readonly index: number;
  readonly label: string;
  readonly group: string;
  readonly disabled: boolean;
  readonly selected: boolean;
}

export interface SelectText {
  readonly name: string;
  readonly options: ShownOption[];
}

/**
 * Returns the `<select>` with an open list, or null if the page styles that list itself (`appearance: base-select`).
 * If no list is open, returns the element of the focused frame, or null.
 */
export function findOpen(): Element | null {
  const focusOf = (root: Document | ShadowRoot): Element | null => {
    const { activeElement: focused } = root;
    return focused?.shadowRoot ? focusOf(focused.shadowRoot) : focused;
  };
  const focused = focusOf(document);
  const open = focused?.matches("select:open") ? focused : document.querySelector("select:open");
  if (open) return getComputedStyle(open).appearance === "base-select" ? null : open;
  return focused?.matches("iframe, frame") ? focused : null;
}

export function isListOpen(select: HTMLSelectElement): boolean {
  return select.matches(":open");
}

export function describeOptions(
  select: HTMLSelectElement,
  max: number,
  labelLength: number,
  nameLength: number,
): SelectText {
  const options: ShownOption[] = [];
  for (let index = 0; index < select.options.length && options.length < max; index += 1) {
    const option = select.options[index];
    if (!option || !isShown(option)) continue;
    const group = option.closest("optgroup");
    if (group && !isShown(group)) continue;
    options.push({
      index,
      label: option.label.slice(0, labelLength).toWellFormed(),
      group: (group?.label ?? "").slice(0, labelLength).toWellFormed(),
      disabled: option.matches(":disabled"),
      selected: option.selected,
    });
  }
  // A label may contain its control. The control's options are not part of the name.
  const parts = [...(select.labels[0]?.childNodes ?? [])].filter((node) => !node.contains(select));
  const name = select.ariaLabel || parts.map(({ textContent }) => textContent).join("") || select.title;
  return { name: name.trim().slice(0, nameLength).toWellFormed(), options };
}

/**
 * Counts the selectable options before an option. In the open list, arrow keys skip options that are disabled or hidden
 * and those of hidden groups. Returns null if the list is closed, or the option cannot be selected or has another
 * label.
 */
export function countSteps(
  select: HTMLSelectElement,
  index: number,
  label: string,
  labelLength: number,
): number | null {
  const canBeChosen = (option: HTMLOptionElement | undefined): boolean => {
    if (!option || option.matches(":disabled") || !isShown(option)) return false;
    const group = option.closest("optgroup");
    return !group || isShown(group);
  };
  const wanted = select.options[index];
  if (!select.matches(":open") || !canBeChosen(wanted)) return null;
  if (wanted?.label.slice(0, labelLength).toWellFormed() !== label) return null;
  let steps = 0;
  for (let before = 0; before < index; before += 1) if (canBeChosen(select.options[before])) steps += 1;
  return steps;
}

function isShown(element: Element): boolean {
  return getComputedStyle(element).display !== "none";
}

/**
 * Returns the fault if the input does not accept `count` files. Otherwise removes the input's files, because setting
 * the same files again would fire no event.
 */
export function emptyInput(input: HTMLInputElement, count: number): { field: string; message: string } | null {
  if (input.webkitdirectory) return { field: "selector", message: "takes a directory" };
  if (count > 1 && !input.multiple)
    return { field: "files", message: "must be one file: the input does not accept several" };
  input.value = "";
  return null;
}

export function describeInput(input: HTMLInputElement, length: number): { accept: string; isFolder: boolean } {
  return { accept: input.accept.slice(0, length), isFolder: input.webkitdirectory };
}

export function cancelInput(input: HTMLInputElement): void {
  input.dispatchEvent(new Event("cancel", { bubbles: true }));
}

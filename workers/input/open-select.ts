import { ownWorld } from "../pages/own-world.ts";
import { callOn, type PageElement } from "../pages/page-element.ts";
import type { Progress } from "../pages/progress.ts";
import type { Tab } from "../pages/tab.ts";

/** Frames that the focus is followed into. */
const deepest = 8;

/** Options shown, and characters of an option label and of the list's name. */
const mostOptions = 1_000;
const labelLength = 100;
const nameLength = 1_000;

/** A `<select>` whose list of options is open. */
export type OpenSelect = PageElement<HTMLSelectElement>;

/** An option shown in the list. */
interface ShownOption {
  readonly index: number;
  readonly label: string;
  readonly group: string;
  readonly disabled: boolean;
  readonly selected: boolean;
}

interface SelectText {
  readonly name: string;
  readonly options: ShownOption[];
}

/** Finds the `<select>` whose list is open: the focused one, or one in the main document that a script opened. */
export async function findOpenSelect(tab: Tab, progress: Progress): Promise<OpenSelect | undefined> {
  let frameId = tab.mainFrameId;
  for (let depth = 0; depth < deepest; depth += 1) {
    const cdp = tab.sessionOf(frameId);
    const world = cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
    const { executionContextId } = await progress.race(world);
    const call = { executionContextId, functionDeclaration: String(findOpen) };
    const { objectId, className } = (await progress.race(cdp.send("Runtime.callFunctionOn", call))).result;
    if (objectId === undefined) return undefined;
    if (className === "HTMLSelectElement") return { cdp, objectId };
    const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId }));
    if (node.frameId === undefined) return undefined;
    frameId = node.frameId;
  }
  return undefined;
}

/** Returns whether the list is still open. */
export const isOpen = (select: OpenSelect, progress: Progress): Promise<boolean> =>
  callOn(select, isListOpen, [], progress);

/** Reads the name and options of the list. */
export const readOptions = (select: OpenSelect, progress: Progress): Promise<SelectText> =>
  callOn(select, describeOptions, [mostOptions, labelLength, nameLength], progress);

/** Returns the number of selectable options before an option. Null if the list no longer offers it. */
export const stepsTo = (
  select: OpenSelect,
  { index, label }: Pick<ShownOption, "index" | "label">,
  progress: Progress,
): Promise<number | null> => callOn(select, countSteps, [index, label, labelLength], progress);

/** Releases the remote element. */
export function forget({ cdp, objectId }: OpenSelect): void {
  cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
}

/**
 * Runs in the page: returns a `<select>` with an open list that the page does not draw itself. Otherwise returns the
 * focused frame.
 */
function findOpen(): Element | null {
  const focusOf = (root: Document | ShadowRoot): Element | null => {
    const { activeElement: focused } = root;
    return focused?.shadowRoot ? focusOf(focused.shadowRoot) : focused;
  };
  const focused = focusOf(document);
  const open = focused?.matches("select:open") ? focused : document.querySelector("select:open");
  if (open) return getComputedStyle(open).appearance === "base-select" ? null : open;
  return focused?.matches("iframe, frame") ? focused : null;
}

/** Runs in the page. */
function isListOpen(this: HTMLSelectElement): boolean {
  return this.matches(":open");
}

/** Runs in the page. */
function describeOptions(this: HTMLSelectElement, most: number, labelLength: number, nameLength: number): SelectText {
  const isShown = (element: Element) => getComputedStyle(element).display !== "none";
  const options: ShownOption[] = [];
  for (let index = 0; index < this.options.length && options.length < most; index += 1) {
    const option = this.options[index];
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
  // A label may contain its control, including all options.
  const parts = [...(this.labels[0]?.childNodes ?? [])].filter((node) => !node.contains(this));
  const name = this.ariaLabel || parts.map(({ textContent }) => textContent).join("") || this.title;
  return { name: name.trim().slice(0, nameLength).toWellFormed(), options };
}

/** Runs in the page. The list omits hidden options and options of hidden groups, and skips disabled ones. */
function countSteps(this: HTMLSelectElement, index: number, label: string, labelLength: number): number | null {
  const isShown = (element: Element) => getComputedStyle(element).display !== "none";
  const canBeChosen = (option: HTMLOptionElement | undefined): boolean => {
    if (!option || option.matches(":disabled") || !isShown(option)) return false;
    const group = option.closest("optgroup");
    return !group || isShown(group);
  };
  const wanted = this.options[index];
  if (!this.matches(":open") || !canBeChosen(wanted)) return null;
  if (wanted?.label.slice(0, labelLength).toWellFormed() !== label) return null;
  let steps = 0;
  for (let before = 0; before < index; before += 1) if (canBeChosen(this.options[before])) steps += 1;
  return steps;
}

import { controlScript } from "../../src/gen/injected/control-script.ts";
import type { SelectText, ShownOption } from "../injected/control-script.ts";
import { ownWorld } from "../pages/own-world.ts";
import { callOn, type PageElement } from "../pages/page-element.ts";
import type { Progress } from "../pages/progress.ts";
import type { Tab } from "../pages/tab.ts";

/** Maximum depth of frames searched for the focus. */
const maxFrameDepth = 8;

/** Maximum number of options read. */
const maxOptions = 1_000;
/** Maximum characters of an option's label. */
const labelLength = 100;
/** Maximum characters of the list's name. */
const nameLength = 1_000;

/** A `<select>` with an open list of options. */
export type OpenSelect = PageElement<HTMLSelectElement>;

/** Finds the `<select>` with an open list, in the main document or in nested focused frames. */
export async function findOpenSelect(tab: Tab, progress: Progress): Promise<OpenSelect | undefined> {
  let frameId = tab.mainFrameId;
  for (let depth = 0; depth < maxFrameDepth; depth += 1) {
    const cdp = tab.sessionOf(frameId);
    const world = cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
    const { executionContextId } = await progress.race(world);
    const call = { executionContextId, functionDeclaration: `() => ${controlScript}.findOpen()` };
    const { objectId, className } = (await progress.race(cdp.send("Runtime.callFunctionOn", call))).result;
    if (objectId === undefined) return undefined;
    if (className === "HTMLSelectElement") return { cdp, objectId };
    const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId }));
    if (node.frameId === undefined) return undefined;
    frameId = node.frameId;
  }
  return undefined;
}

export const isOpen = (select: OpenSelect, progress: Progress): Promise<boolean> =>
  callOn(select, "isListOpen", [], progress);

export const readOptions = (select: OpenSelect, progress: Progress): Promise<SelectText> =>
  callOn(select, "describeOptions", [maxOptions, labelLength, nameLength], progress);

/**
 * Returns the number of selectable options before an option. Null if the option cannot be selected in the open list.
 */
export const stepsTo = (
  select: OpenSelect,
  { index, label }: Pick<ShownOption, "index" | "label">,
  progress: Progress,
): Promise<number | null> => callOn(select, "countSteps", [index, label, labelLength], progress);

/** Releases the remote element. */
export function releaseSelect({ cdp, objectId }: OpenSelect): void {
  cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
}

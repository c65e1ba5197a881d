import { checkScript } from "../../src/gen/injected/check-script.ts";
import { ownWorld } from "../pages/own-world.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import type { CheckFrame } from "./vendors.ts";

/** Maximum number of answer fields examined per document. Each widget has one field. */
const maxFields = 5;

/**
 * Resolves to true if a check's frame is visible and unsolved. Visibility is measured on the frame's owner element,
 * even in a closed shadow root, which Turnstile uses.
 */
export async function isUnsolved(tab: Tab, frame: Frame, check: CheckFrame): Promise<boolean> {
  for (let at = frame; at.parentId !== undefined; ) {
    if (!(await isShown(tab, at, check.minWidth, check.minHeight))) return false;
    const parent = tab.frame(at.parentId);
    if (!parent) return false;
    at = parent;
  }
  return (
    check.answer === undefined || frame.parentId === undefined || !(await isAnswered(tab, frame.parentId, check.answer))
  );
}

async function isShown(tab: Tab, { id, parentId = "" }: Frame, minWidth: number, minHeight: number): Promise<boolean> {
  const cdp = tab.sessionOf(parentId);
  const [{ backendNodeId }, { executionContextId }] = await Promise.all([
    cdp.send("DOM.getFrameOwner", { frameId: id }),
    cdp.send("Page.createIsolatedWorld", { frameId: parentId, worldName: ownWorld }),
  ]);
  const { object } = await cdp.send("DOM.resolveNode", { backendNodeId, executionContextId });
  const { objectId } = object;
  if (objectId === undefined) return false;
  try {
    const { result } = await cdp.send("Runtime.callFunctionOn", {
      objectId,
      functionDeclaration: `function (...sizes) { return ${checkScript}.showsEnough(this, ...sizes); }`,
      arguments: [{ value: minWidth }, { value: minHeight }],
      returnByValue: true,
    });
    return result.value === true;
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  }
}

async function isAnswered(tab: Tab, frameId: string, answer: string): Promise<boolean> {
  const cdp = tab.sessionOf(frameId);
  const { executionContextId: contextId } = await cdp.send("Page.createIsolatedWorld", {
    frameId,
    worldName: ownWorld,
  });
  const expression = `${checkScript}.hasValue(${JSON.stringify(answer)}, ${maxFields})`;
  const { result } = await cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true });
  return result.value === true;
}

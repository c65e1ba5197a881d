import { checkScript } from "../../src/gen/injected/check-script.ts";
import { ownWorld } from "../pages/own-world.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import type { CheckFrame } from "./vendors.ts";

/** Maximum number of token fields examined per document. Each widget has one field. */
const maxFields = 5;

/**
 * Resolves to true if a check is unsolved and its frame and all parent frames are visible. Visibility is determined
 * from the element that contains each frame, also in a closed shadow root, which Turnstile uses.
 */
export async function isUnsolved(tab: Tab, frame: Frame, check: CheckFrame): Promise<boolean> {
  for (let at = frame; at.parentId !== undefined; ) {
    if (!(await isShown(tab, at, check.minWidth, check.minHeight))) return false;
    const parent = tab.frame(at.parentId);
    if (!parent) return false;
    at = parent;
  }
  return (
    check.tokenSelector === undefined ||
    frame.parentId === undefined ||
    !(await hasToken(tab, frame.parentId, check.tokenSelector))
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
      functionDeclaration: `function (...sizes) { return ${checkScript}.isShownAtSize(this, ...sizes); }`,
      arguments: [{ value: minWidth }, { value: minHeight }],
      returnByValue: true,
    });
    return result.value === true;
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  }
}

async function hasToken(tab: Tab, frameId: string, tokenSelector: string): Promise<boolean> {
  const cdp = tab.sessionOf(frameId);
  const { executionContextId: contextId } = await cdp.send("Page.createIsolatedWorld", {
    frameId,
    worldName: ownWorld,
  });
  const expression = `${checkScript}.hasValue(${JSON.stringify(tokenSelector)}, ${maxFields})`;
  const { result } = await cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true });
  return result.value === true;
}

import { ownWorld } from "../pages/own-world.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import type { CheckFrame } from "./vendors.ts";

/** Answer fields examined per document. Each widget has one. */
const maxFields = 5;

/**
 * Resolves with whether a check's frame is visible and unsolved. Visibility is measured on the frame's owner element,
 * even in a closed shadow root, as Turnstile uses.
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
      functionDeclaration: String(showsAtLeast),
      arguments: [{ value: minWidth }, { value: minHeight }],
      returnByValue: true,
    });
    return result.value === true;
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  }
}

/** Runs in the page, on the owner element of a frame. */
function showsAtLeast(this: Element, minWidth: number, minHeight: number): boolean {
  const { width, height, right } = this.getBoundingClientRect();
  // Elements to the left of the page cannot be scrolled into view.
  return width >= minWidth && height >= minHeight && right > 0 && this.checkVisibility({ visibilityProperty: true });
}

async function isAnswered(tab: Tab, frameId: string, answer: string): Promise<boolean> {
  const cdp = tab.sessionOf(frameId);
  const { executionContextId: contextId } = await cdp.send("Page.createIsolatedWorld", {
    frameId,
    worldName: ownWorld,
  });
  const expression = `(${hasValue})(${JSON.stringify(answer)}, ${maxFields})`;
  const { result } = await cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true });
  return result.value === true;
}

/** Runs in the page. Calls methods through prototypes, because named elements can shadow them in every world. */
function hasValue(selector: string, most: number): boolean {
  const fields: Element[] = [];
  const roots: (Document | ShadowRoot)[] = [document];
  for (let root = roots.pop(); root && fields.length < most; root = roots.pop()) {
    const { querySelectorAll } = root instanceof Document ? Document.prototype : DocumentFragment.prototype;
    fields.push(...querySelectorAll.call(root, selector));
    for (const element of querySelectorAll.call(root, "*")) {
      const shadow: ShadowRoot | null = Reflect.get(Element.prototype, "shadowRoot", element);
      if (shadow) roots.push(shadow);
    }
  }
  return fields.slice(0, most).some((field) => "value" in field && field.value !== "");
}

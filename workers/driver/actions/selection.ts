import { ownWorld } from "../../pages/own-world.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";

/** Characters of a selection that are read. */
const most = 262_144;

/** Returns the selected text of a page, including same-origin frames, as a copy command would. */
export async function readSelection({ cdp, targetId: frameId }: SessionPage, progress: Progress): Promise<string> {
  const world = cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
  const { executionContextId: contextId } = await progress.race(world);
  const expression = `(${selectedText})(${most})`;
  const asked = cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true, timeout: 1_000 });
  const { result } = await progress.race(asked);
  return typeof result.value === "string" ? result.value : "";
}

/**
 * Runs in the page, in an isolated world. Fields keep a selection of their own; that of a password field is never
 * returned.
 */
function selectedText(length: number): string {
  const focusOf = (root: Document | ShadowRoot): Element | null => {
    const { activeElement: focused } = root;
    if (focused instanceof HTMLIFrameElement && focused.contentDocument) return focusOf(focused.contentDocument);
    return focused?.shadowRoot ? focusOf(focused.shadowRoot) : focused;
  };
  const focused = focusOf(document);
  // Elements of another frame are not instances of this realm's classes.
  const field = focused as Partial<HTMLInputElement> | null;
  const { value, selectionStart: start, selectionEnd: end } = field ?? {};
  if (typeof value === "string" && typeof start === "number" && typeof end === "number")
    return field?.type === "password" ? "" : value.slice(start, end).slice(0, length);
  const shown = focused?.ownerDocument ?? document;
  return String(shown.getSelection() ?? "").slice(0, length);
}

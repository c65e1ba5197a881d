import { ownWorld } from "../../pages/own-world.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";

/** How much of a selection is read. */
const most = 262_144;

/** Reads what is selected in a page and in its frames of the same origin, the way that copying takes it. */
export async function readSelection({ cdp, targetId: frameId }: SessionPage, progress: Progress): Promise<string> {
  const world = cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
  const { executionContextId: contextId } = await progress.race(world);
  const expression = `(${selectedText})(${most})`;
  const asked = cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true, timeout: 1_000 });
  const { result } = await progress.race(asked);
  return typeof result.value === "string" ? result.value : "";
}

/** Runs in the page, in a world of its own. A field has a selection that its document does not tell; a password tells none. */
function selectedText(length: number): string {
  const focusOf = (root: Document | ShadowRoot): Element | null => {
    const { activeElement: focused } = root;
    if (focused instanceof HTMLIFrameElement && focused.contentDocument) return focusOf(focused.contentDocument);
    return focused?.shadowRoot ? focusOf(focused.shadowRoot) : focused;
  };
  const focused = focusOf(document);
  // Elements of a frame are of classes of that frame.
  const field = focused as Partial<HTMLInputElement> | null;
  const { value, selectionStart: start, selectionEnd: end } = field ?? {};
  if (typeof value === "string" && typeof start === "number" && typeof end === "number")
    return field?.type === "password" ? "" : value.slice(start, end).slice(0, length);
  const shown = focused?.ownerDocument ?? document;
  return String(shown.getSelection() ?? "").slice(0, length);
}

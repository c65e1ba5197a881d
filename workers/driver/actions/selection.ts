import { selectionScript } from "../../../src/gen/injected/selection-script.ts";
import { ownWorld } from "../../pages/own-world.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";

/** Maximum characters read from a selection. */
const max = 262_144;

/**
 * Returns the text that a copy command would copy: the selection in the focused field or document, also in a
 * same-origin frame. Empty for a password field.
 */
export async function readSelection({ cdp, targetId: frameId }: SessionPage, progress: Progress): Promise<string> {
  const world = cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
  const { executionContextId: contextId } = await progress.race(world);
  const expression = `${selectionScript}.selectedText(${max})`;
  const evaluating = cdp.send("Runtime.evaluate", { expression, contextId, returnByValue: true, timeout: 1_000 });
  const { result } = await progress.race(evaluating);
  return typeof result.value === "string" ? result.value : "";
}

import { fail, failFields } from "../../src/platform/errors.ts";
import type { FileChooser } from "../pages/dialog-desk.ts";
import { ownWorld } from "../pages/own-world.ts";
import type { Progress } from "../pages/progress.ts";
import type { CdpSession } from "../wire/cdp-session.ts";

/** A file input of a document, in a world that is not the page's. */
export interface FileInput {
  readonly cdp: CdpSession;
  readonly objectId: string;
}

/** The input that a file chooser was opened for: it need not be in the document. */
export async function inputOfChooser(
  { session: cdp, frameId, backendNodeId }: FileChooser,
  progress: Progress,
): Promise<FileInput> {
  const world = { frameId, worldName: ownWorld };
  const { executionContextId } = await progress.race(cdp.send("Page.createIsolatedWorld", world));
  const { object } = await progress.race(cdp.send("DOM.resolveNode", { backendNodeId, executionContextId }));
  if (object.objectId === undefined) throw fail("driver-error", {}, { detail: "the file input has left the page" });
  return { cdp, objectId: object.objectId };
}

/** Gives an input files in place of those that it has; it tells its page as when a person has chosen them. */
export async function giveFiles(
  { cdp, objectId }: FileInput,
  paths: readonly string[],
  progress: Progress,
): Promise<void> {
  const fault = await callOn({ cdp, objectId }, emptyInput, paths.length, progress);
  if (fault) throw failFields("validation-failed", fault);
  await progress.race(cdp.send("DOM.setFileInputFiles", { objectId, files: [...paths] }));
}

async function callOn<Value>(
  { cdp, objectId }: FileInput,
  act: (this: HTMLInputElement, count: number) => Value,
  count: number,
  progress: Progress,
): Promise<Value> {
  const call = { objectId, functionDeclaration: String(act), arguments: [{ value: count }], returnByValue: true };
  const { result } = await progress.race(cdp.send("Runtime.callFunctionOn", call));
  // The boundary where what our own function gives gets its type.
  return result.value as Value;
}

/**
 * Runs in the page: says what is wrong with so many files, or takes those away that the input has. Of the same files as
 * before it would not tell its page.
 */
function emptyInput(this: HTMLInputElement, count: number): Record<string, string> | null {
  if (this.webkitdirectory) return { "action.selector": "takes a directory" };
  if (count > 1 && !this.multiple) return { "action.files": "are several, and the input takes one" };
  this.value = "";
  return null;
}

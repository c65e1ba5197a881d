import { fail, failFields } from "../../src/platform/errors.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import { ownWorld } from "../pages/own-world.ts";
import { callOn, type PageElement } from "../pages/page-element.ts";
import type { Progress } from "../pages/progress.ts";

/** How much is kept of the types of files that an input is for. */
const acceptLength = 1_000;

/** A file chooser that a page has opened for an input. */
export interface FileChooser {
  readonly session: CdpSession;
  readonly frameId: string;
  readonly backendNodeId: number;
}

/** A file input of a document. */
export type FileInput = PageElement<HTMLInputElement>;

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

/** Says what an input takes. */
export function readInput(input: FileInput, progress: Progress): Promise<{ accept: string; isFolder: boolean }> {
  return callOn(input, "describeInput", [acceptLength], progress);
}

/** Tells the page of an input that a person has chosen nothing, as browsers do. */
export function giveNothing(input: FileInput, progress: Progress): Promise<void> {
  return callOn(input, "cancelInput", [], progress);
}

/** Gives an input files in place of those that it has; it tells its page as when a person has chosen them. */
export async function giveFiles(
  { cdp, objectId }: FileInput,
  paths: readonly string[],
  progress: Progress,
): Promise<void> {
  const fault = await callOn({ cdp, objectId }, "emptyInput", [paths.length], progress);
  if (fault) throw failFields("validation-failed", fault);
  await progress.race(cdp.send("DOM.setFileInputFiles", { objectId, files: [...paths] }));
}

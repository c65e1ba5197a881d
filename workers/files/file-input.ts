import { fail, failFields } from "../../src/platform/errors.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import { ownWorld } from "../pages/own-world.ts";
import { callOn, type PageElement } from "../pages/page-element.ts";
import type { Progress } from "../pages/progress.ts";

/** Maximum characters of an input's `accept` attribute. */
const acceptLength = 1_000;

/** A file chooser that a page has opened for an input. */
export interface FileChooser {
  readonly session: CdpSession;
  readonly frameId: string;
  readonly backendNodeId: number;
}

export type FileInput = PageElement<HTMLInputElement>;

/** Resolves with the input of a file chooser. The input may be detached from the document. */
export async function inputOfChooser(
  { session: cdp, frameId, backendNodeId }: FileChooser,
  progress: Progress,
): Promise<FileInput> {
  const world = { frameId, worldName: ownWorld };
  const { executionContextId } = await progress.race(cdp.send("Page.createIsolatedWorld", world));
  const { object } = await progress.race(cdp.send("DOM.resolveNode", { backendNodeId, executionContextId }));
  if (object.objectId === undefined) throw fail("driver-error", {}, { detail: "the file input no longer exists" });
  return { cdp, objectId: object.objectId };
}

/** Resolves with an input's accepted types and whether the input selects a folder. */
export function readInput(input: FileInput, progress: Progress): Promise<{ accept: string; isFolder: boolean }> {
  return callOn(input, "describeInput", [acceptLength], progress);
}

/** Dispatches `cancel` on an input, as browsers do if no file is chosen. */
export function cancelChooser(input: FileInput, progress: Progress): Promise<void> {
  return callOn(input, "cancelInput", [], progress);
}

/**
 * Replaces the files of an input. The browser dispatches `input` and `change`, as after a user's choice. Throws
 * `validation-failed` about fields of `parent` if the input cannot take these files.
 */
export async function setFiles(
  { cdp, objectId }: FileInput,
  paths: readonly string[],
  parent: "action" | "answer",
  progress: Progress,
): Promise<void> {
  const fault = await callOn({ cdp, objectId }, "emptyInput", [paths.length], progress);
  if (fault) throw failFields("validation-failed", { [`${parent}.${fault.field}`]: fault.message });
  await progress.race(cdp.send("DOM.setFileInputFiles", { objectId, files: [...paths] }));
}

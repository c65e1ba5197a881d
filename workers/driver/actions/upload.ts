import { create } from "@bufbuild/protobuf";
import { type Tap, TapSchema, type Upload } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { unlessLate } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { type FileInput, inputOfChooser, setFiles } from "../../files/file-input.ts";
import type { Locator } from "../elements/locator.ts";
import { callForObject } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import { requiredLocator, type Scene } from "./scene.ts";
import { tap } from "./tap.ts";

/**
 * Sets files of the session on a file input. If the element is neither a file input nor part of a file input's label,
 * taps the element and uses the file chooser that opens.
 */
export async function upload(scene: Scene, request: Upload): Promise<void> {
  const { selector, frame, ref, files } = request;
  const paths = files.map((name, index) => {
    const path = scene.files.pathOf(name);
    if (path !== undefined) return path;
    const fault = `the session has no file ${JSON.stringify(name)}`;
    throw failFields("validation-failed", { [`action.files[${index}]`]: fault });
  });
  const named = await holdFileInput(scene, requiredLocator(scene, request, "action"));
  const input =
    named ?? (await inputBehind(scene, create(TapSchema, { frame, ...(ref === undefined ? { selector } : { ref }) })));
  await setFiles(input, paths, "action", scene.progress);
}

/**
 * Taps an element and returns the input of the file chooser that opens. Throws `session-timeout` if no file chooser
 * opens.
 */
async function inputBehind(scene: Scene, request: Tap): Promise<FileInput> {
  const { fileChoosers, sessionPage, progress } = scene;
  using expected = fileChoosers.expect(sessionPage.tab);
  await tap(scene, request);
  const opened = unlessLate(expected.chooser, progress.remaining(), () => {
    throw fail(
      "session-timeout",
      {},
      { detail: "the element is not a file input, and tapping it opened no file chooser" },
    );
  });
  return inputOfChooser(await progress.race(opened), progress);
}

/**
 * Waits for a match, visible or not. Returns the first file input that matches, or has a label that matches or contains
 * a match. Null if there is none.
 */
function holdFileInput(scene: Scene, locator: Locator): Promise<FileInput | null> {
  return reachElement<FileInput | null>(scene, locator, async ({ inner }, timeoutMs) => {
    const options = { selector: locator.selector, timeoutMs };
    const { objectId, value } = await callForObject(scene, inner, "findFileInput", options);
    if (objectId !== undefined) return { value: { cdp: inner.cdp, objectId } };
    if (value === false) return { value: null };
    return { hindrance: String(value), isFinal: value !== "" };
  });
}

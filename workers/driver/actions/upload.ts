import { create } from "@bufbuild/protobuf";
import { type Tap, TapSchema, type Upload } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { unlessLate } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { type FileInput, giveFiles, inputOfChooser } from "../../files/file-input.ts";
import { holdElement } from "../elements/reach.ts";
import { neededAim, type Scene } from "./scene.ts";
import { tap } from "./tap.ts";

/**
 * Sets files of the session on a file input. If the element is not one, taps it and uses the file chooser that opens.
 */
export async function upload(scene: Scene, request: Upload): Promise<void> {
  const { selector, frame, ref, files } = request;
  const paths = files.map((name, index) => {
    const path = scene.files.pathOf(name);
    if (path !== undefined) return path;
    const fault = `the session has no file ${JSON.stringify(name)}`;
    throw failFields("validation-failed", { [`action.files[${index}]`]: fault });
  });
  const named = await holdElement(scene, neededAim(scene, request, "action"), fileInputOf);
  const input =
    named ?? (await inputBehind(scene, create(TapSchema, { frame, ...(ref === undefined ? { selector } : { ref }) })));
  await giveFiles(input, paths, scene.progress);
}

/** Taps an element and returns the input of the file chooser that opens. */
async function inputBehind(scene: Scene, request: Tap): Promise<FileInput> {
  const { chooserDesk, sessionPage, progress } = scene;
  using expected = chooserDesk.expect(sessionPage.tab);
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

/** Runs in the page: returns the element or its label's control, if that is a file input. */
function fileInputOf(match: Element): Element | undefined {
  const control = match.closest("label")?.control ?? match;
  return control instanceof HTMLInputElement && control.type === "file" ? control : undefined;
}

import { create } from "@bufbuild/protobuf";
import { type Tap, TapSchema, type Upload } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { unlessLate } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import { type FileInput, giveFiles, inputOfChooser } from "../../files/file-input.ts";
import { holdElement } from "../elements/reach.ts";
import { neededAim, type Scene } from "./scene.ts";
import { tap } from "./tap.ts";

/** Gives files of the session to a file input, or to the one whose chooser opens when something else is tapped. */
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

/** Taps what opens a file chooser, and gives the input that this is for. */
async function inputBehind(scene: Scene, request: Tap): Promise<FileInput> {
  const { chooserDesk, sessionPage, progress } = scene;
  using expected = chooserDesk.expect(sessionPage.tab);
  await tap(scene, request);
  const opened = unlessLate(expected.chooser, progress.remaining(), () => {
    throw fail("session-timeout", {}, { detail: "the element is not a file input, and opened no file chooser" });
  });
  return inputOfChooser(await progress.race(opened), progress);
}

/** Runs in the page: an element itself or what its label is for, if that takes files. */
function fileInputOf(match: Element): Element | undefined {
  const control = match.closest("label")?.control ?? match;
  return control instanceof HTMLInputElement && control.type === "file" ? control : undefined;
}

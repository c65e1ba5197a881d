import type { Upload } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../src/platform/errors.ts";
import { holdElement } from "../elements/reach.ts";
import { giveFiles } from "../files/file-input.ts";
import type { Scene } from "./scene.ts";

/** Gives files of the session to a file input. */
export async function upload(scene: Scene, { selector, frame, files }: Upload): Promise<void> {
  const paths = files.map((name, index) => {
    const path = scene.files.pathOf(name);
    if (path !== undefined) return path;
    const fault = `the session has no file ${JSON.stringify(name)}`;
    throw failFields("validation-failed", { [`action.files[${index}]`]: fault });
  });
  const input = await holdElement(scene, { selector, frame, path: "action" }, fileInputOf);
  if (!input) throw failFields("validation-failed", { "action.selector": "is not a file input" });
  await giveFiles(input, paths, scene.progress);
}

/** Runs in the page: an element itself or what its label is for, if that takes files. */
function fileInputOf(match: Element): Element | undefined {
  const control = match.closest("label")?.control ?? match;
  return control instanceof HTMLInputElement && control.type === "file" ? control : undefined;
}

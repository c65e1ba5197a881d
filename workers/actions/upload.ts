import { setTimeout as delay } from "node:timers/promises";
import type { Upload } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { type FileInput, giveFiles } from "../files/file-input.ts";
import type { Scene } from "./scene.ts";
import { type Aim, notParsed, selectorsOf } from "./selectors.ts";

/** The world in which our script sees the document, and the page does not see our script. */
const worldName = "upload";

/** How often an element is looked for that is not there yet. */
const lookMs = 50;

/** Gives files of the session to a file input. */
export async function upload(scene: Scene, { selector, frame, files }: Upload): Promise<void> {
  const paths = files.map((name, index) => {
    const path = scene.files.pathOf(name);
    if (path !== undefined) return path;
    const fault = `the session has no file ${JSON.stringify(name)}`;
    throw failFields("validation-failed", { [`action.files[${index}]`]: fault });
  });
  const input = await findInput(scene, { selector, frame, path: "action" });
  await giveFiles(input, paths, scene.progress);
}

/** Waits for the input that a selector names. */
async function findInput(scene: Scene, aim: Aim): Promise<FileInput> {
  const { progress } = scene;
  for (;;) {
    const found = await look(scene, aim);
    if (typeof found !== "string") return found;
    if (progress.remaining() <= lookMs) throw fail("session-timeout", {}, { detail: found });
    await progress.race(delay(lookMs));
  }
}

/** Looks for an input in its frame; says what is in the way when it is not there. */
async function look({ sessionPage, progress }: Scene, aim: Aim): Promise<FileInput | string> {
  let frameId = await progress.race(sessionPage.targetId);
  const selectors = selectorsOf(aim);
  for (const { selector, field } of selectors) {
    const cdp = await progress.race(sessionPage.cdpOf(frameId));
    const { executionContextId } = await progress.race(cdp.send("Page.createIsolatedWorld", { frameId, worldName }));
    const find = field === selectors.at(-1)?.field ? findFileInput : findFirst;
    const expression = `(${find})(${JSON.stringify(selector)})`;
    const asked = cdp.send("Runtime.evaluate", { expression, contextId: executionContextId });
    const { result, exceptionDetails } = await progress.race(asked);
    if (exceptionDetails) throw notParsed(field);
    const { objectId } = result;
    if (objectId === undefined) {
      if (result.value === false) throw failFields("validation-failed", { [field]: "is not a file input" });
      return `no element matches ${find === findFirst ? field : "the selector"}`;
    }
    if (find === findFileInput) return { cdp, objectId };
    const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId }));
    if (node.frameId === undefined) throw failFields("validation-failed", { [field]: "is not a frame" });
    frameId = node.frameId;
  }
  return "there is no frame";
}

/** Runs in the page: the first match. */
function findFirst(selector: string): Element | null {
  return document.querySelector(selector);
}

/** Runs in the page: the first match that is a file input, or the label of one; false when no match is. */
function findFileInput(selector: string): Element | false | undefined {
  const matches = [...document.querySelectorAll(selector)];
  if (matches.length === 0) return undefined;
  const controls = matches.map((match) => match.closest("label")?.control ?? match);
  return controls.find((control) => control instanceof HTMLInputElement && control.type === "file") ?? false;
}

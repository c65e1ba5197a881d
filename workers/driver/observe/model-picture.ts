import { within } from "../../../src/platform/deadline.ts";
import type { Ref } from "../../injected/page-refs.ts";
import type { Scene } from "../actions/scene.ts";
import { takeGlance } from "../capture/screenshot.ts";
import { callIfKnown, childFrame, type FrameSession, mainFrame } from "../elements/page-world.ts";

/** Longest side in pixels and quality of the screenshot. Higher values cost more without showing a model more. */
const longestSide = 1_280;
const quality = 60;

/** Longest time for a frame to cover or uncover its fields. */
const coverMs = 2_000;

/**
 * Takes the screenshot for a model, with secret and password fields covered, and a numbered box around each element of
 * `marked`. Returns undefined if a frame did not confirm its covers.
 */
export async function takeModelPicture(scene: Scene, marked: readonly Ref[] = []) {
  const { tab } = scene.sessionPage;
  // Frames without our script contain none of our secrets, and their passwords are dots.
  const frames = [...tab.frames].map(({ id }) => (id === tab.mainFrameId ? mainFrame(scene) : childFrame(scene, id)));
  const call = (name: "coverFields" | "uncoverFields") => (frame: FrameSession) =>
    within(
      callIfKnown(scene, frame, name).then((isCovered) => ({ frame, isCovered })),
      coverMs,
      undefined,
    );
  const covered = await Promise.all(frames.map(call("coverFields")));
  try {
    if (covered.includes(undefined)) return undefined;
    if (marked.length > 0) await mark(scene, frames, marked);
    const { parts, size } = await takeGlance(scene, longestSide, quality);
    return { data: Buffer.concat(parts), ...size };
  } finally {
    const left = covered.flatMap((each) => (each?.isCovered ? each.frame : []));
    const marks = marked.length > 0 ? [mark(scene, frames, [])] : [];
    await Promise.all([...left.map(call("uncoverFields")), ...marks]);
  }
}

/** Draws the marks of each frame. Without references, removes them. */
async function mark(scene: Scene, frames: readonly FrameSession[], marked: readonly Ref[]): Promise<void> {
  const drawing = frames.map((frame) => {
    return within(callIfKnown(scene, frame, "drawMarks", marked, frame.isMain), coverMs, undefined);
  });
  await Promise.all(drawing);
}

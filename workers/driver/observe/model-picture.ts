import { within } from "../../../src/platform/deadline.ts";
import type { Scene } from "../actions/scene.ts";
import { takeGlance } from "../capture/screenshot.ts";
import { callIfKnown, childFrame, type Frame, mainFrame } from "../elements/page-world.ts";

/** The longest side of a picture, and its quality. More costs a model more, and shows it no more. */
const longestSide = 1_280;
const quality = 60;

/** How long a frame may take to cover its fields, and to take the covers away. */
const coverMs = 2_000;

/**
 * Takes the picture of a page that a model may see: fields with secrets and passwords are covered in it. Undefined where
 * some frame has not said that its own are.
 */
export async function takeModelPicture(scene: Scene) {
  const { tab } = scene.sessionPage;
  // Our script is not in what was never looked at: no secret of ours is there, and passwords are dots.
  const frames = [...tab.frames].map(({ id }) => (id === tab.mainFrameId ? mainFrame(scene) : childFrame(scene, id)));
  const call = (name: "coverFields" | "uncoverFields") => (frame: Frame) =>
    within(
      callIfKnown(scene, frame, name).then((isCovered) => ({ frame, isCovered })),
      coverMs,
      undefined,
    );
  const covered = await Promise.all(frames.map(call("coverFields")));
  try {
    if (covered.includes(undefined)) return undefined;
    const { parts, size } = await takeGlance(scene, longestSide, quality);
    return { data: Buffer.concat(parts), ...size };
  } finally {
    const left = covered.flatMap((each) => (each?.isCovered ? each.frame : []));
    await Promise.all(left.map(call("uncoverFields")));
  }
}

import { within } from "../../../src/platform/deadline.ts";
import type { Clip } from "../../injected/page-clip.ts";
import type { MarkBox } from "../../injected/page-marks.ts";
import type { Ref } from "../../injected/page-refs.ts";
import type { Scene } from "../actions/scene.ts";
import { captureScaledViewport } from "../capture/screenshot.ts";
import { callIfLoaded, callPage, childFrame, type FrameSession, mainFrame } from "../elements/page-world.ts";
import type { FramePosition } from "./page-snapshot.ts";

/** Maximum length of the longer side in pixels, and JPEG quality from 0 to 100. */
export interface PictureSize {
  readonly longestSide: number;
  readonly quality: number;
}

/** Size of pictures for models. Larger pictures cost more tokens without improving a model's results. */
const modelSize: PictureSize = { longestSide: 1_280, quality: 60 };

/** Longest wait in milliseconds for a frame to cover or uncover its fields, or to return or draw boxes. */
const coverMs = 2_000;

/** Elements to number in a picture, and the positions of their frames by document epoch. */
export interface Marked {
  readonly refs: readonly Ref[];
  readonly positions: ReadonlyMap<number, FramePosition>;
}

/**
 * Takes the screenshot for a model, with secret and password fields covered, and a numbered box around each element of
 * `marked`. Returns undefined if a frame did not confirm that its fields are covered.
 */
export function takeModelPicture(scene: Scene, marked?: Marked) {
  return takeCoveredPicture(scene, modelSize, marked);
}

/** Same as `takeModelPicture`, but with the given size and quality. */
export async function takeCoveredPicture(scene: Scene, size: PictureSize, marked?: Marked) {
  const { tab } = scene.sessionPage;
  // Frames without our script contain no secrets of the session, and show passwords as dots.
  const frames = [...tab.frames].map(({ id }) => (id === tab.mainFrameId ? mainFrame(scene) : childFrame(scene, id)));
  const call = (name: "coverFields" | "uncoverFields") => (frame: FrameSession) =>
    within(
      callIfLoaded(scene, frame, name).then((isCovered) => ({ frame, isCovered })),
      coverMs,
      undefined,
    );
  const covered = await Promise.all(frames.map(call("coverFields")));
  try {
    if (covered.includes(undefined)) return undefined;
    const boxes = marked ? await boxesIn(scene, frames, marked) : [];
    const { parts, size: taken } = await captureScaledViewport(scene, size.longestSide, size.quality);
    return { data: await draw(scene, Buffer.concat(parts), boxes), ...taken };
  } finally {
    const left = covered.flatMap((each) => (each?.isCovered ? each.frame : []));
    await Promise.all(left.map(call("uncoverFields")));
  }
}

/** Returns the visible parts of the elements' boxes, in the viewport of the page. */
async function boxesIn(scene: Scene, frames: readonly FrameSession[], { refs, positions }: Marked): Promise<MarkBox[]> {
  const perFrame = frames.map(async (frame) => {
    const boxes = await within(callIfLoaded(scene, frame, "markedBoxes", refs), coverMs, undefined);
    return (boxes ?? []).flatMap(({ epoch, number, ...box }) => {
      const position = positions.get(epoch);
      const mark = frame.isMain ? `${number}` : `s${epoch}e${number}`;
      return position ? toPageBox(mark, box, position) : [];
    });
  });
  return (await Promise.all(perFrame)).flat();
}

/** Converts a box of a frame to the page's viewport. Returns an empty list if the frame shows nothing of the box. */
function toPageBox(
  mark: string,
  { left, top, right, bottom }: Clip,
  { clip, origin: { x, y } }: FramePosition,
): MarkBox[] {
  const seen = {
    left: Math.max(left, clip?.left ?? left),
    top: Math.max(top, clip?.top ?? top),
    right: Math.min(right, clip?.right ?? right),
    bottom: Math.min(bottom, clip?.bottom ?? bottom),
  };
  if (seen.left >= seen.right || seen.top >= seen.bottom) return [];
  return [{ mark, left: seen.left + x, top: seen.top + y, right: seen.right + x, bottom: seen.bottom + y }];
}

/** Draws boxes on a picture. If the page does not answer in time, returns the picture without boxes. */
async function draw(scene: Scene, picture: Buffer, boxes: readonly MarkBox[]): Promise<Buffer> {
  if (boxes.length === 0) return picture;
  const drawing = callPage(scene, mainFrame(scene), "drawMarks", picture.toString("base64"), boxes, modelSize.quality);
  const drawn = await within(drawing, coverMs, undefined);
  return drawn === undefined ? picture : Buffer.from(drawn, "base64");
}

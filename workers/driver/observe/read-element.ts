import { create } from "@bufbuild/protobuf";
import { type Observation, ObservationSchema } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { withoutLookahead } from "../../injected/plain-text.ts";
import { shownText } from "../../pages/shown-text.ts";
import type { Scene } from "../actions/scene.ts";
import { callPage, mainFrame } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";

/** Bytes reserved for the parts of the line other than its text. */
const lineBytes = 64;

/**
 * Returns a part of an element's value or text as a snapshot of one line. `offset` is in code points, `room` in bytes.
 */
export async function readElement(scene: Scene, ref: string, offset: number, room: number): Promise<Observation> {
  const { sessionPage, viewport, refs, secrets } = scene;
  const locator = refs.locatorOf(ref, sessionPage.id, "");
  const text = await reachElement(scene, locator, ({ inner }) =>
    callPage(scene, inner, "readElementText", locator.selector),
  );
  const { title, scroll, height } = await callPage(scene, mainFrame(scene), "readPageHead");
  // Masked before the cut, because part of a secret would not be recognized.
  const masked = secrets.textMask()?.apply(text) ?? withoutLookahead(text);
  const { part, nextOffset } = cutText(masked.toWellFormed(), offset, room - lineBytes);
  return create(ObservationSchema, {
    pageId: sessionPage.id,
    url: sessionPage.address,
    title: shownText(title),
    snapshot: `- text ${JSON.stringify(part)} ref=${ref}`,
    viewport,
    scroll,
    height,
    ...(nextOffset !== undefined && { nextOffset }),
  });
}

/** Returns the part from `offset` that takes at most `room` bytes of JSON. Offsets are in code points. */
function cutText(text: string, offset: number, room: number): { part: string; nextOffset: number | undefined } {
  const points = [...text].slice(offset);
  let left = room;
  const count = points.findIndex((point) => {
    left -= Buffer.byteLength(JSON.stringify(point)) - 2;
    return left < 0;
  });
  if (count < 0) return { part: points.join(""), nextOffset: undefined };
  return { part: points.slice(0, count).join(""), nextOffset: offset + count };
}

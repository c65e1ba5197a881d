import type { Clip } from "./page-clip.ts";
import { elementOf, type Ref } from "./page-refs.ts";
import * as visibility from "./page-visibility.ts";

/* Numbered boxes on a picture of the page. The boxes are drawn on the picture, so the page cannot detect them. */

const maxMarks = 500;

/** Width of a box's border in pixels. */
const border = 2;

/** A numbered box, in CSS pixels of the viewport. */
export interface MarkBox extends Clip {
  readonly mark: string;
}

/** Returns the boxes of the referenced elements of this document. Considers the first `maxMarks` references. */
export function markedBoxes(refs: readonly Ref[]): (Ref & Clip)[] {
  return refs.slice(0, maxMarks).flatMap((ref) => {
    const element = elementOf(ref);
    if (!element) return [];
    const { left, top, right, bottom } = visibility.boxOf(element);
    return [{ ...ref, left, top, right, bottom }];
  });
}

/** Draws boxes on a JPEG of the viewport. `picture` and the result are in base64. */
export async function drawMarks(picture: string, boxes: readonly MarkBox[], quality: number): Promise<string> {
  const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser has no canvas");
  context.drawImage(image, 0, 0);
  image.close();
  const {
    offsetLeft,
    offsetTop,
    width: shownWidth,
  } = visualViewport ?? { offsetLeft: 0, offsetTop: 0, width: innerWidth };
  const factor = canvas.width / shownWidth;
  context.font = "bold 11px monospace";
  context.textBaseline = "top";
  for (const { mark, left, top, right, bottom } of boxes) {
    const [x, y] = [(left - offsetLeft) * factor, (top - offsetTop) * factor];
    const [width, height] = [(right - left) * factor, (bottom - top) * factor];
    context.fillStyle = "#d6006c";
    for (const side of [0, 1]) {
      context.fillRect(x + side * (width - border), y, border, height);
      context.fillRect(x, y + side * (height - border), width, border);
    }
    context.fillRect(x, y, context.measureText(mark).width + 4, 13);
    context.fillStyle = "#fff";
    context.fillText(mark, x + 2, y + 1);
  }
  const drawn = await canvas.convertToBlob({ type: "image/jpeg", quality: quality / 100 });
  return toBase64(new Uint8Array(await drawn.arrayBuffer()));
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}

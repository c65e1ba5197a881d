import { failFields } from "../../../src/platform/errors.ts";
import type { ImageSize } from "./image-size.ts";

/** Image formats by their names in CDP. */
export type PictureFormat = "png" | "jpeg" | "webp";

/** Longest side in pixels that a format can store. For a larger image, the browser returns no data. */
const longestSides: Readonly<Record<PictureFormat, number>> = {
  png: 2 ** 31 - 1,
  jpeg: 65_535,
  webp: 16_383,
};

/**
 * The compositor holds 2,048 tiles of 256 pixels a side, which overlap by two pixels. Areas without a tile stay white
 * (seen with Chromium 156). `tilePixels` is the side without the overlap. The tiles beyond `maxTiles` are left for
 * layers in front of the page.
 */
const tilePixels = 254;
const maxTiles = 1_800;

/**
 * Throws `validation-failed` if the browser could not render an image of this size, or the format could not store the
 * image. `sizedBy` is the request field that determines the size.
 */
export function checkPicture({ width, height }: ImageSize, format: PictureFormat, sizedBy: string): void {
  const size = `and this one would be ${width}x${height}`;
  const longest = longestSides[format];
  if (Math.max(width, height) > longest) {
    throw failFields("validation-failed", {
      format: `a ${format} has at most ${longest} pixels a side, ${size}`,
    });
  }
  const tallest = Math.floor(maxTiles / Math.ceil(width / tilePixels)) * tilePixels;
  if (height > tallest) {
    throw failFields("validation-failed", {
      [sizedBy]: `a picture ${width} pixels wide can be at most ${tallest} tall, ${size}`,
    });
  }
}

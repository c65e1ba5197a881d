import type { Scene } from "../actions/scene.ts";
import { captureScaledViewport } from "../capture/screenshot.ts";
import { type PictureSize, takeCoveredPicture } from "./model-picture.ts";

const maxBytes = 12 * 1_024;

/**
 * Sizes to try in order. At the first size most pages take 3 to 8 kB. Only pages full of noise need the other sizes.
 */
const sizes: readonly PictureSize[] = [
  { longestSide: 320, quality: 50 },
  { longestSide: 320, quality: 20 },
  { longestSide: 160, quality: 20 },
];

export interface ThumbnailPicture {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
}

type TakePicture = (size: PictureSize) => Promise<Partial<ThumbnailPicture> | undefined>;

/**
 * Takes a JPEG of the viewport, of at most 320 pixels a side and 12 KiB. Returns undefined if every size takes more
 * bytes.
 */
export function takeThumbnail(scene: Scene): Promise<ThumbnailPicture | undefined> {
  return takeSmall(async ({ longestSide, quality }) => {
    const { parts, size } = await captureScaledViewport(scene, longestSide, quality);
    return { data: Buffer.concat(parts), ...size };
  });
}

/**
 * Same as `takeThumbnail`, with secret and password fields covered. Also returns undefined if a frame did not confirm
 * that its fields are covered.
 */
export function takeCoveredThumbnail(scene: Scene): Promise<ThumbnailPicture | undefined> {
  return takeSmall((size) => takeCoveredPicture(scene, size));
}

async function takeSmall(take: TakePicture): Promise<ThumbnailPicture | undefined> {
  for (const size of sizes) {
    const { data, width = 0, height = 0 } = (await take(size)) ?? {};
    if (!data) return undefined;
    if (data.length <= maxBytes) return { data, width, height };
  }
  return undefined;
}

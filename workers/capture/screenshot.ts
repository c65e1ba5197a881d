import { CaptureFormat, type CaptureRequest, CaptureScale } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { messageOf } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import type { CdpSession } from "../wire/cdp-session.ts";
import type { RawCapture } from "./captured.ts";
import { readImageSize } from "./image-size.ts";
import { checkPicture, type PictureFormat } from "./picture-limits.ts";
import { type Box, showElement } from "./shown-element.ts";

/** Right after a load the compositor has nothing to give once in a while: seen in a third of first tries. */
const tries = 5;

const defaultQuality = 80;

/** A part of the document to take a picture of. */
interface Part {
  /** In CSS pixels from the document's upper left corner. */
  readonly box: Box;
  /** How much larger than the document's own CSS pixels those of the picture are. */
  readonly zoom: number;
  /** It reaches beyond the viewport, which the browser widens for the picture. */
  readonly isBeyond: boolean;
}

/** Takes a picture of the viewport, of the whole document or of one element. */
export async function takeScreenshot(scene: Scene, request: CaptureRequest): Promise<RawCapture> {
  const { progress, sessionPage, viewport } = scene;
  const cdp = await progress.race(sessionPage.cdp);
  const part = await findPart(scene, cdp, request);
  const format = formatOf(request.format);
  const factor = viewport.deviceScaleFactor;
  const scale = (part?.zoom ?? 1) / (request.scale === CaptureScale.CSS ? factor : 1);
  const { width, height } = part?.box ?? viewport;
  const size = { width: Math.round(width * scale * factor), height: Math.round(height * scale * factor) };
  checkPicture(size, format, sizedBy(request));
  const bytes = await shoot(scene, cdp, {
    format,
    // 36 % more bytes for 40 % less time.
    ...(format === "png" ? { optimizeForSpeed: true } : { quality: request.quality ?? defaultQuality }),
    ...(part && { clip: { ...part.box, scale }, captureBeyondViewport: part.isBeyond }),
  });
  return { contentType: `image/${format}`, parts: [bytes], size: readImageSize(bytes) };
}

async function shoot(
  { progress }: Scene,
  cdp: CdpSession,
  options: Parameters<typeof cdp.send<"Page.captureScreenshot">>[1],
): Promise<Buffer> {
  for (let left = tries; ; left -= 1) {
    try {
      const { data } = await progress.race(cdp.send("Page.captureScreenshot", options));
      if (data === "") throw new Error("the browser gave an empty picture");
      return Buffer.from(data, "base64");
    } catch (thrown) {
      if (left === 1 || !messageOf(thrown).includes("Unable to capture screenshot")) throw thrown;
    }
  }
}

/** The part that is asked for; none for the viewport as the browser shows it, which takes no question. */
async function findPart(scene: Scene, cdp: CdpSession, request: CaptureRequest): Promise<Part | undefined> {
  const { selector, frame, fullPage, scale } = request;
  const isScaled = scale === CaptureScale.CSS && scene.viewport.deviceScaleFactor !== 1;
  if (selector === undefined && !fullPage && !isScaled) return undefined;
  const shown = selector === undefined ? undefined : await showElement(scene, { selector, frame, path: "" });
  const metrics = await scene.progress.race(cdp.send("Page.getLayoutMetrics"));
  const { cssContentSize, cssLayoutViewport, cssVisualViewport } = metrics;
  const view = boxOf(cssVisualViewport);
  if (!shown && !fullPage) return { box: view, zoom: cssVisualViewport.scale, isBeyond: false };
  const box = shown ? enclose(shown, boxOf(cssLayoutViewport)) : { ...cssContentSize, x: 0, y: 0 };
  return { box, zoom: 1, isBeyond: !isWithin(box, view) };
}

function boxOf({ pageX, pageY, clientWidth, clientHeight }: ViewportMetrics): Box {
  return { x: pageX, y: pageY, width: clientWidth, height: clientHeight };
}

/** The whole pixels of the document in which a box of the viewport lies. */
function enclose({ x, y, width, height }: Box, viewport: Box): Box {
  const [left, top] = [Math.floor(x + viewport.x), Math.floor(y + viewport.y)];
  const [right, bottom] = [Math.ceil(x + viewport.x + width), Math.ceil(y + viewport.y + height)];
  return { x: left, y: top, width: right - left, height: bottom - top };
}

function isWithin(inner: Box, outer: Box): boolean {
  const isAcross = inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width;
  return isAcross && inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height;
}

interface ViewportMetrics {
  readonly pageX: number;
  readonly pageY: number;
  readonly clientWidth: number;
  readonly clientHeight: number;
}

/** The field that makes a picture as large as it is. */
function sizedBy({ selector, fullPage }: CaptureRequest): string {
  if (selector !== undefined) return "selector";
  return fullPage ? "full_page" : "scale";
}

function formatOf(format: CaptureFormat): PictureFormat {
  switch (format) {
    case CaptureFormat.JPEG:
      return "jpeg";
    case CaptureFormat.WEBP:
      return "webp";
    default:
      return "png";
  }
}

import { setTimeout } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  CaptureFormat,
  type CaptureRequest,
  CaptureRequestSchema,
  CaptureScale,
} from "../../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession } from "../../cdp/cdp-session.ts";
import type { Box } from "../../injected/page-aim.ts";
import { askBrowser } from "../../pages/ask-browser.ts";
import { messageOf } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import type { RawCapture } from "./captured.ts";
import { readImageSize } from "./image-size.ts";
import { checkPicture, type PictureFormat } from "./picture-limits.ts";
import { whileShown } from "./shown-element.ts";

/**
 * The longest pause before the browser is asked again, in milliseconds; pauses double up to it. Right after a load the
 * compositor has nothing to give: seen in a third of first tries, and on a busy machine for 40 ms.
 */
const longestPause = 1_000;

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
  const { selector, frame, fullPage, scale } = request;
  if (selector !== undefined) {
    return whileShown(scene, { selector, frame, path: "" }, async (box) =>
      takePart(scene, request, await partAround(scene, box)),
    );
  }
  const isAsShown = scale !== CaptureScale.CSS || scene.viewport.deviceScaleFactor === 1;
  // What the browser shows takes no question of where it is.
  if (isAsShown && !fullPage) return takePart(scene, request, undefined);
  return takePart(scene, request, await (fullPage ? wholeDocument(scene) : wholeViewport(scene)));
}

/** Takes a JPEG of the viewport, no side of which is longer than so many pixels. */
export async function takeGlance(scene: Scene, longestSide: number, quality: number): Promise<RawCapture> {
  const request = create(CaptureRequestSchema, { format: CaptureFormat.JPEG, scale: CaptureScale.CSS, quality });
  const { width, height, deviceScaleFactor } = scene.viewport;
  const shrink = Math.min(1, longestSide / Math.max(width, height));
  if (shrink === 1 && deviceScaleFactor === 1) return takePart(scene, request, undefined);
  const part = await wholeViewport(scene);
  return takePart(scene, request, { ...part, zoom: part.zoom * shrink });
}

async function takePart(scene: Scene, request: CaptureRequest, part: Part | undefined): Promise<RawCapture> {
  const format = formatOf(request.format);
  const factor = scene.viewport.deviceScaleFactor;
  const scale = (part?.zoom ?? 1) / (request.scale === CaptureScale.CSS ? factor : 1);
  const { width, height } = part?.box ?? scene.viewport;
  const size = { width: Math.round(width * scale * factor), height: Math.round(height * scale * factor) };
  checkPicture(size, format, sizedBy(request));
  const bytes = await shoot(scene, {
    format,
    // 36 % more bytes for 40 % less time.
    ...(format === "png" ? { optimizeForSpeed: true } : { quality: request.quality ?? defaultQuality }),
    ...(part && { clip: { ...part.box, scale }, captureBeyondViewport: part.isBeyond }),
  });
  return { contentType: `image/${format}`, parts: [bytes], size: readImageSize(bytes) };
}

async function shoot(scene: Scene, options: ShotOptions): Promise<Buffer> {
  for (let pause = 1; ; pause *= 2) {
    try {
      const { data } = await ask(scene, options);
      if (data === "") throw new Error("the browser gave an empty picture");
      return Buffer.from(data, "base64");
    } catch (thrown) {
      if (pause > longestPause || !messageOf(thrown).includes("Unable to capture screenshot")) throw thrown;
    }
    await scene.progress.race(setTimeout(pause));
  }
}

/** Asks for a picture; again when another document comes meanwhile, of whose predecessor the browser never answers. */
async function ask({ progress, sessionPage }: Scene, options: ShotOptions): Promise<Shot> {
  const { cdp, tab } = sessionPage;
  for (;;) {
    const { committed } = tab;
    const asked = askBrowser(progress, () => cdp.send("Page.captureScreenshot", options));
    const shot = await tab.changes.before(asked, () => tab.committed > committed, progress);
    if (shot) return shot;
    if (progress.isOver) return progress.race(asked);
  }
}

type Shot = Awaited<ReturnType<typeof CdpSession.prototype.send<"Page.captureScreenshot">>>;
type ShotOptions = Parameters<typeof CdpSession.prototype.send<"Page.captureScreenshot">>[1];

async function wholeViewport(scene: Scene): Promise<Part> {
  const { cssVisualViewport } = await readMetrics(scene);
  return { box: boxOf(cssVisualViewport), zoom: cssVisualViewport.scale, isBeyond: false };
}

async function wholeDocument(scene: Scene): Promise<Part> {
  const { cssContentSize, cssVisualViewport } = await readMetrics(scene);
  const box = { ...cssContentSize, x: 0, y: 0 };
  return { box, zoom: 1, isBeyond: !isWithin(box, boxOf(cssVisualViewport)) };
}

/** The whole pixels of the document in which a box of the viewport lies. */
async function partAround(scene: Scene, { x, y, width, height }: Box): Promise<Part> {
  const { cssLayoutViewport, cssVisualViewport } = await readMetrics(scene);
  const { pageX, pageY } = cssLayoutViewport;
  const [left, top] = [Math.floor(x + pageX), Math.floor(y + pageY)];
  const [right, bottom] = [Math.ceil(x + pageX + width), Math.ceil(y + pageY + height)];
  const box = { x: left, y: top, width: right - left, height: bottom - top };
  return { box, zoom: 1, isBeyond: !isWithin(box, boxOf(cssVisualViewport)) };
}

async function readMetrics({ progress, sessionPage }: Scene) {
  const cdp = sessionPage.cdp;
  return progress.race(cdp.send("Page.getLayoutMetrics"));
}

function boxOf({ pageX, pageY, clientWidth, clientHeight }: ViewportMetrics): Box {
  return { x: pageX, y: pageY, width: clientWidth, height: clientHeight };
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

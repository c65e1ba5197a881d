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
import { sendWithRetry } from "../../pages/send-with-retry.ts";
import { messageOf } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import type { RawCapture } from "./captured.ts";
import { readImageSize } from "./image-size.ts";
import { checkPicture, type PictureFormat } from "./picture-limits.ts";
import { whileCaptureShown } from "./shown-element.ts";

/**
 * Longest delay between retries in milliseconds. Delays start at 1 and double. Right after a load the compositor may
 * have no frame: a third of the first attempts failed, for up to 40 ms on a busy machine.
 */
const longestPause = 1_000;

const defaultQuality = 80;

/** A part of the document to capture. */
interface Part {
  /** In CSS pixels from the document's upper left corner. */
  readonly box: Box;
  /** Scale of the image before the device scale factor is applied. 1 shows the document at its size in CSS pixels. */
  readonly zoom: number;
  /** Whether the part exceeds the viewport. If so, the browser enlarges the viewport for the capture. */
  readonly isBeyond: boolean;
}

/** Captures the viewport, the whole document or one element. */
export async function takeScreenshot(scene: Scene, request: CaptureRequest): Promise<RawCapture> {
  const { selector, frame, fullPage, scale } = request;
  if (selector !== undefined) {
    return whileCaptureShown(scene, { selector, frame, path: "" }, async (box) =>
      takePart(scene, request, await partAround(scene, box)),
    );
  }
  const isAsShown = scale !== CaptureScale.CSS || scene.viewport.deviceScaleFactor === 1;
  // A capture of the viewport at its own scale needs no layout metrics.
  if (isAsShown && !fullPage) return takePart(scene, request, undefined);
  return takePart(scene, request, await (fullPage ? wholeDocument(scene) : wholeViewport(scene)));
}

/** Captures the viewport as a JPEG with sides of at most `longestSide` pixels. */
export async function captureScaledViewport(scene: Scene, longestSide: number, quality: number): Promise<RawCapture> {
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
  const bytes = await captureImage(scene, {
    format,
    // `optimizeForSpeed` takes 40 % less time, for 36 % more bytes.
    ...(format === "png" ? { optimizeForSpeed: true } : { quality: request.quality ?? defaultQuality }),
    ...(part && { clip: { ...part.box, scale }, captureBeyondViewport: part.isBeyond }),
  });
  return { contentType: `image/${format}`, parts: [bytes], size: readImageSize(bytes) };
}

async function captureImage(scene: Scene, options: ShotOptions): Promise<Buffer> {
  for (let pause = 1; ; pause *= 2) {
    try {
      const { data } = await captureOnce(scene, options);
      if (data === "") throw new Error("expected an image from the browser, got none");
      return Buffer.from(data, "base64");
    } catch (thrown) {
      if (pause > longestPause || !messageOf(thrown).includes("Unable to capture screenshot")) throw thrown;
    }
    await scene.progress.race(setTimeout(pause));
  }
}

/** Captures a screenshot. Retries after a navigation, because the browser does not answer for a replaced document. */
async function captureOnce({ progress, sessionPage }: Scene, options: ShotOptions): Promise<Shot> {
  const { cdp, tab } = sessionPage;
  for (;;) {
    const { committed } = tab;
    const response = sendWithRetry(progress, () => cdp.send("Page.captureScreenshot", options));
    const shot = await tab.changes.before(response, () => tab.committed > committed, progress);
    if (shot) return shot;
    if (progress.isOver) return progress.race(response);
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

/** Converts a box of the viewport to the part of the document in the box, rounded outwards to whole CSS pixels. */
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

/** Returns the request field that determines the image's size. */
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

import { CaptureFormat, type CaptureRequest } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { elementFailure, messageOf } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import { locateVisible } from "../actions/selectors.ts";
import type { CdpSession } from "../wire/cdp-session.ts";
import type { RawCapture } from "./captured.ts";
import { readImageSize } from "./image-size.ts";

/** Right after a load the compositor has nothing to give once in a while: seen in a third of first tries. */
const tries = 5;

const defaultQuality = 80;

/** A part of the document in CSS pixels. */
interface Clip {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Takes a picture of the viewport, of the whole document or of one element. */
export async function takeScreenshot(scene: Scene, request: CaptureRequest): Promise<RawCapture> {
  const { progress, sessionPage } = scene;
  const format = formatOf(request.format);
  const cdp = await progress.race(sessionPage.cdp);
  const clip = await findClip(scene, cdp, request);
  const options = {
    format,
    // 36 % more bytes for 40 % less time.
    ...(format === "png" ? { optimizeForSpeed: true } : { quality: request.quality ?? defaultQuality }),
    ...(clip && { clip: { ...clip, scale: 1 }, captureBeyondViewport: true }),
  };
  const bytes = await shoot(scene, cdp, options);
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
      return Buffer.from(data, "base64");
    } catch (thrown) {
      if (left === 1 || !messageOf(thrown).includes("Unable to capture screenshot")) throw thrown;
    }
  }
}

async function findClip(scene: Scene, cdp: CdpSession, request: CaptureRequest): Promise<Clip | undefined> {
  const { selector, frame, fullPage } = request;
  if (selector !== undefined) return clipOfElement(scene, cdp, selector, frame);
  if (!fullPage) return undefined;
  const { cssContentSize } = await scene.progress.race(cdp.send("Page.getLayoutMetrics"));
  return { x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height };
}

/** How long the element of a capture may take to appear: as long as that of an interact. */
const elementMs = 5_000;

async function clipOfElement(scene: Scene, cdp: CdpSession, selector: string, frame: readonly string[]): Promise<Clip> {
  const aim = { selector, frame, path: "" };
  try {
    const element = locateVisible(scene.page, aim);
    const timeout = Math.min(scene.progress.remaining(), elementMs);
    await element.scrollIntoViewIfNeeded({ timeout });
    const box = await element.boundingBox({ timeout });
    if (!box) throw fail("driver-error", {}, { detail: "the element has left the page" });
    const { cssVisualViewport } = await scene.progress.race(cdp.send("Page.getLayoutMetrics"));
    return { ...box, x: box.x + cssVisualViewport.pageX, y: box.y + cssVisualViewport.pageY };
  } catch (thrown) {
    throw await elementFailure(thrown, scene.page, [aim]);
  }
}

function formatOf(format: CaptureFormat): "png" | "jpeg" | "webp" {
  switch (format) {
    case CaptureFormat.UNSPECIFIED:
    case CaptureFormat.PNG:
      return "png";
    case CaptureFormat.JPEG:
      return "jpeg";
    case CaptureFormat.WEBP:
      return "webp";
    default:
      throw failFields("validation-failed", { format: "is not a format of a screenshot" });
  }
}

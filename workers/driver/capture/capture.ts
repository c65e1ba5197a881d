import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  CaptureFormat,
  type CaptureHeader,
  CaptureHeaderSchema,
  CaptureKind,
  type CaptureRequest,
} from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import { crashedFailure } from "../../pages/tab.ts";
import { browserFailure } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import { Captured, type RawCapture } from "./captured.ts";
import { snapshotDom, snapshotMhtml } from "./dom-snapshot.ts";
import { printPdf } from "./pdf.ts";
import { takeScreenshot } from "./screenshot.ts";

export interface FinishedCapture {
  readonly header: CaptureHeader;
  readonly captured: Captured;
}

/** Completes a capture before its reader receives any part. A large capture is stored in a file in `directory`. */
export async function capture(scene: Scene, request: CaptureRequest, directory: string): Promise<FinishedCapture> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  const raw = await make(scene, request).catch(async (thrown: unknown) => {
    throw browserFailure(thrown);
  });
  const captured = await Captured.keep(raw, directory);
  const { contentType, size, bytes } = captured;
  const header = create(CaptureHeaderSchema, {
    kind: request.kind,
    contentType,
    ...(size && { width: size.width, height: size.height }),
    bytes: BigInt(bytes),
    capturedAt: timestampNow(),
  });
  return { header, captured };
}

async function make(scene: Scene, request: CaptureRequest): Promise<RawCapture> {
  switch (request.kind) {
    case CaptureKind.SCREENSHOT:
      return takeScreenshot(scene, request);
    case CaptureKind.PDF:
      return printPdf(scene, request);
    case CaptureKind.DOM_SNAPSHOT:
      return request.format === CaptureFormat.MHTML ? snapshotMhtml(scene) : snapshotDom(scene);
    default:
      throw failFields("validation-failed", { kind: "is required" });
  }
}

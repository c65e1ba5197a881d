import type { CaptureRequest } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import type { Scene } from "../actions/scene.ts";
import { captureTooLarge, maxBytes, type RawCapture } from "./captured.ts";

/** Width and height of paper sizes in inches, in portrait orientation. */
const papers: Readonly<Record<string, readonly [number, number]>> = {
  a3: [11.7, 16.54],
  a4: [8.27, 11.7],
  a5: [5.83, 8.27],
  letter: [8.5, 11],
  legal: [8.5, 14],
  tabloid: [11, 17],
};

const readBytes = 1024 * 1024;

export async function printPdf(scene: Scene, request: CaptureRequest): Promise<RawCapture> {
  const [paperWidth, paperHeight] = papers[request.paper ?? "a4"] ?? papers.a4 ?? [8.27, 11.7];
  const { progress, sessionPage } = scene;
  const cdp = sessionPage.cdp;
  const printed = cdp.send("Page.printToPDF", {
    paperWidth,
    paperHeight,
    landscape: request.landscape,
    printBackground: request.printBackground,
    // Accessibility tags make printing take 50 % longer.
    generateTaggedPDF: false,
    transferMode: "ReturnAsStream",
  });
  const { stream } = await progress.race(printed);
  if (stream === undefined) throw new Error("expected a PDF stream from the browser, got none");
  return { contentType: "application/pdf", parts: await readStream(scene, stream) };
}

async function readStream({ progress, sessionPage }: Scene, handle: string): Promise<Buffer[]> {
  const cdp = sessionPage.cdp;
  const read = () => cdp.send("IO.read", { handle, size: readBytes });
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for (let isAtEnd = false; !isAtEnd; ) {
      // Only the read after the last part reports the end, so two reads are sent together.
      for (const { data, base64Encoded, eof } of await progress.race(Promise.all([read(), read()]))) {
        const part = Buffer.from(data, base64Encoded ? "base64" : "latin1");
        bytes += part.length;
        if (bytes > maxBytes) throw captureTooLarge(bytes);
        parts.push(part);
        isAtEnd = eof;
      }
    }
    return parts;
  } finally {
    cdp.send("IO.close", { handle }).catch(() => undefined);
  }
}

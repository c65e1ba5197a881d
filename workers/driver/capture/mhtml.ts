import type { Scene } from "../actions/scene.ts";
import type { RawCapture } from "./captured.ts";
import { encodeText } from "./text-parts.ts";

/** Saves the page with its resources as MHTML (RFC 2557). */
export async function snapshotMhtml({ progress, sessionPage }: Scene): Promise<RawCapture> {
  const cdp = sessionPage.cdp;
  const { data } = await progress.race(cdp.send("Page.captureSnapshot", { format: "mhtml" }));
  return { contentType: "multipart/related", parts: await encodeText(data) };
}

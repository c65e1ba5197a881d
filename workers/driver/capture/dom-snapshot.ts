import { within } from "../../../src/platform/deadline.ts";
import type { Scene } from "../actions/scene.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentReplaced,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";
import { retryUntilTimeout } from "../elements/reach.ts";
import { captureTooLarge, maxBytes, type RawCapture } from "./captured.ts";
import { encodeText, escapeAttribute } from "./text-parts.ts";

/** Maximum characters per CDP message. Larger messages would delay other messages on the browser's pipe. */
const sliceLength = 4 * 1024 * 1024;

/** Longest time in milliseconds for a child frame's document. A frame that takes longer is left out. */
const frameMs = 5_000;

/** Maximum depth and number of frames. Further frames are left out. */
const maxDepth = 8;
const maxFrames = 200;

/** Serializes the current document with form values, open shadow roots and the documents of its frames. */
export async function snapshotDom(scene: Scene): Promise<RawCapture> {
  // If the page navigates meanwhile, the new document is captured.
  const html = await retryUntilTimeout(scene, async () => ({
    value: await new DomSnapshot(scene).write(mainFrame(scene), 0),
  }));
  return { contentType: "text/html; charset=utf-8", parts: await encodeText(html) };
}

class DomSnapshot {
  /**
   * Prefix of each frame's placeholder, and the key of the serialized documents in each world. Pages cannot read it.
   */
  readonly #token = `frame-${crypto.randomUUID()}-`;
  readonly #scene: Scene;
  #frames = 0;
  #length = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  async write(frame: FrameSession, depth: number): Promise<string> {
    let isKept = true;
    try {
      const { html, isWhole } = await this.#read(frame);
      isKept = !isWhole;
      this.#length += html.length;
      if (this.#length > maxBytes) throw captureTooLarge(this.#length);
      return await this.#inline(frame, html, depth);
    } finally {
      if (isKept) callPage(this.#scene, frame, "forgetDocument", this.#token).catch(() => undefined);
    }
  }

  /** Inserts the documents of child frames into a document's HTML. */
  async #inline(frame: FrameSession, html: string, depth: number): Promise<string> {
    const [first = "", ...parts] = html.split(this.#token);
    const written = [first];
    let length = first.length;
    for (const part of parts) {
      const end = part.indexOf(";");
      const child = await this.#writeChild(frame, Number(part.slice(0, end)), depth + 1);
      const escaped = await escapeAttribute(child, maxBytes - length);
      length += escaped.length + part.length;
      if (length > maxBytes) throw captureTooLarge(length);
      written.push(escaped, part.slice(end + 1));
    }
    return written.join("");
  }

  async #writeChild(parent: FrameSession, index: number, depth: number): Promise<string> {
    this.#frames += 1;
    if (depth > maxDepth || this.#frames > maxFrames) return "";
    const write = async () => {
      const { objectId } = await callForObject(this.#scene, parent, "frameHolder", this.#token, index);
      if (objectId === undefined) return "";
      const { node } = await parent.cdp.send("DOM.describeNode", { objectId });
      return node.frameId === undefined ? "" : await this.write(childFrame(this.#scene, node.frameId), depth);
    };
    return within(write(), frameMs, "");
  }

  /**
   * Reads a serialized document, a large document in slices. If `isWhole` is false, the script keeps the document until
   * `forgetDocument`.
   */
  async #read(frame: FrameSession): Promise<{ readonly html: string; readonly isWhole: boolean }> {
    const options = { token: this.#token, limit: maxBytes };
    const slices: string[] = [];
    for (let from = 0; ; ) {
      const slice = { from, size: sliceLength };
      const read = await callPage(this.#scene, frame, "readDocument", options, slice);
      if (!read) throw new DocumentReplaced("the document was replaced while it was read");
      if (read.length > maxBytes) throw captureTooLarge(read.length);
      slices.push(read.html);
      from += read.html.length;
      if (read.html === "" || from >= read.length) return { html: slices.join(""), isWhole: read.isWhole };
    }
  }
}

/** Saves the page with its resources as MHTML (RFC 2557). */
export async function snapshotMhtml({ progress, sessionPage }: Scene): Promise<RawCapture> {
  const cdp = sessionPage.cdp;
  const { data } = await progress.race(cdp.send("Page.captureSnapshot", { format: "mhtml" }));
  return { contentType: "multipart/related", parts: await encodeText(data) };
}

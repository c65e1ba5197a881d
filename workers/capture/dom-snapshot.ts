import type { Frame, JSHandle } from "playwright-core";
import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../actions/scene.ts";
import type { Progress } from "../session/progress.ts";
import { MAX_BYTES, type RawCapture, tooLarge } from "./captured.ts";
import { type SerializedDocument, serializeDocument } from "./dom-script.ts";

/** Characters that the browser's pipe carries in one message without anyone else's waiting for it. */
const SLICE_LENGTH = 4 * 1024 * 1024;

/** How long the document of a frame may take: one that hangs is left out, the rest is still worth having. */
const FRAME_MS = 5_000;

/** Frames nested deeper, or more of them, are left out. */
const MAX_DEPTH = 8;
const MAX_FRAMES = 200;

/** Writes the document as it is now: with form values, open shadow roots and the documents of its frames. */
export async function snapshotDom(scene: Scene): Promise<RawCapture> {
  const snapshot = new DomSnapshot(scene.progress);
  const html = await snapshot.write(scene.page.mainFrame(), 0);
  return { contentType: "text/html; charset=utf-8", parts: [Buffer.from(html, "utf8")] };
}

class DomSnapshot {
  /** A page cannot know it, so it cannot make text of its own pass for a frame. */
  readonly #token = `frame-${crypto.randomUUID()}-`;
  readonly #progress: Progress;
  #frames = 0;
  #length = 0;

  constructor(progress: Progress) {
    this.#progress = progress;
  }

  async write(frame: Frame, depth: number): Promise<string> {
    const { html, frames } = await this.#read(frame);
    this.#length += html.length;
    if (this.#length > MAX_BYTES) throw tooLarge(this.#length);
    if (frames === 0) return html;
    // Both lists are in the order in which the frames came; of different length, one has changed meanwhile.
    const children = frame.childFrames();
    const parts = html.split(this.#token);
    let whole = parts.shift() ?? "";
    for (const part of parts) {
      const end = part.indexOf(";");
      const child = children.length === frames ? children[Number(part.slice(0, end))] : undefined;
      whole += escapeAttribute(child ? await this.#writeChild(child, depth + 1) : "") + part.slice(end + 1);
      if (whole.length > MAX_BYTES) throw tooLarge(whole.length);
    }
    return whole;
  }

  async #writeChild(frame: Frame, depth: number): Promise<string> {
    this.#frames += 1;
    if (depth > MAX_DEPTH || this.#frames > MAX_FRAMES) return "";
    return within(this.write(frame, depth), FRAME_MS, "");
  }

  async #read(frame: Frame): Promise<SerializedDocument> {
    const options = { token: this.#token, limit: MAX_BYTES };
    const inline = { ...options, limit: SLICE_LENGTH };
    const small = await this.#progress.race(frame.evaluate(serializeDocument, inline));
    if (small.length <= SLICE_LENGTH) return small;
    const handle = await this.#progress.race(frame.evaluateHandle(serializeDocument, options));
    try {
      return await this.#readSlices(handle);
    } finally {
      handle.dispose().catch(() => undefined);
    }
  }

  async #readSlices(handle: JSHandle<SerializedDocument>): Promise<SerializedDocument> {
    const { length, frames } = await this.#progress.race(handle.evaluate(({ length, frames }) => ({ length, frames })));
    if (length > MAX_BYTES) throw tooLarge(length);
    const slices: string[] = [];
    for (let from = 0; from < length; ) {
      const range = { from, size: SLICE_LENGTH };
      const slice = await this.#progress.race(handle.evaluate(sliceHtml, range));
      if (slice === "") break;
      slices.push(slice);
      from += slice.length;
    }
    return { html: slices.join(""), length, frames };
  }
}

/** Runs in the page: a part of the text that does not end between the two halves of a character. */
function sliceHtml({ html }: SerializedDocument, { from, size }: { from: number; size: number }): string {
  const last = html.charCodeAt(from + size - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return html.slice(from, from + size - (isHalf ? 1 : 0));
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
}

import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../actions/scene.ts";
import type { CdpSession } from "../wire/cdp-session.ts";
import { maxBytes, type RawCapture, tooLarge } from "./captured.ts";
import { type SerializedDocument, serializeDocument } from "./dom-script.ts";
import { encodeText, escapeAttribute } from "./text-parts.ts";

/** The world in which our script sees the document, and the page does not see our script. */
const worldName = "snapshot";

/** Characters that the browser's pipe carries in one message without anyone else's waiting for it. */
const sliceLength = 4 * 1024 * 1024;

/** How long the document of a frame may take: one that hangs is left out, the rest is still worth having. */
const frameMs = 5_000;

/** Frames nested deeper, or more of them, are left out. */
const maxDepth = 8;
const maxFrames = 200;

/** Writes the document as it is now: with form values, open shadow roots and the documents of its frames. */
export async function snapshotDom(scene: Scene): Promise<RawCapture> {
  const { progress, sessionPage } = scene;
  const html = await new DomSnapshot(scene).write(await progress.race(sessionPage.targetId), 0);
  return { contentType: "text/html; charset=utf-8", parts: await encodeText(html) };
}

/** A document of the page while it is read; what was written of it stays in its world meanwhile. */
interface OpenDocument {
  /** Evaluates an expression about the written document, which it calls `written`. */
  evaluate(expression: string, returnByValue: boolean): Promise<{ value?: unknown; objectId?: string }>;
  readonly cdp: CdpSession;
}

class DomSnapshot {
  /** Stands in the document for the frames in it, and names what was written of each document in its world. */
  readonly #token = `frame-${crypto.randomUUID()}-`;
  readonly #scene: Scene;
  #frames = 0;
  #length = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  async write(frameId: string, depth: number): Promise<string> {
    const document = await this.#open(frameId);
    try {
      const html = await this.#read(document);
      this.#length += html.length;
      if (this.#length > maxBytes) throw tooLarge(this.#length);
      return await this.#inline(document, html, depth);
    } finally {
      document.evaluate(`delete globalThis[${JSON.stringify(this.#token)}]`, true).catch(() => undefined);
    }
  }

  /** Puts the documents of its frames into a document. */
  async #inline(document: OpenDocument, html: string, depth: number): Promise<string> {
    const [first = "", ...parts] = html.split(this.#token);
    const written = [first];
    let length = first.length;
    for (const part of parts) {
      const end = part.indexOf(";");
      const child = await this.#writeChild(document, Number(part.slice(0, end)), depth + 1);
      const escaped = await escapeAttribute(child, maxBytes - length);
      length += escaped.length + part.length;
      if (length > maxBytes) throw tooLarge(length);
      written.push(escaped, part.slice(end + 1));
    }
    return written.join("");
  }

  async #writeChild(parent: OpenDocument, index: number, depth: number): Promise<string> {
    this.#frames += 1;
    if (depth > maxDepth || this.#frames > maxFrames) return "";
    const write = async () => {
      const { objectId } = await parent.evaluate(`written.frames[${index}]`, false);
      if (objectId === undefined) return "";
      const { node } = await parent.cdp.send("DOM.describeNode", { objectId });
      return node.frameId === undefined ? "" : await this.write(node.frameId, depth);
    };
    return within(write(), frameMs, "");
  }

  async #open(frameId: string): Promise<OpenDocument> {
    const { progress, sessionPage } = this.#scene;
    const cdp = await progress.race(sessionPage.cdpOf(frameId));
    const world = { frameId, worldName };
    const { executionContextId: contextId } = await progress.race(cdp.send("Page.createIsolatedWorld", world));
    const name = `globalThis[${JSON.stringify(this.#token)}]`;
    const options = JSON.stringify({ token: this.#token, limit: maxBytes });
    return {
      cdp,
      evaluate: async (about, returnByValue) => {
        const expression = `{ const written = ${name} ??= (${serializeDocument})(${options}); ${about} }`;
        const asked = cdp.send("Runtime.evaluate", { expression, contextId, returnByValue });
        const { result, exceptionDetails } = await progress.race(asked);
        if (exceptionDetails) throw new Error(`the document cannot be written: ${exceptionDetails.text}`);
        return result;
      },
    };
  }

  /** Reads what was written of a document: in one go unless it is large. */
  async #read(document: OpenDocument): Promise<string> {
    const slices: string[] = [];
    for (let from = 0; ; ) {
      const about = `({ length: written.length, html: (${sliceHtml})(written.html, ${from}, ${sliceLength}) })`;
      const { value } = await document.evaluate(about, true);
      // The boundary where what our own script gives gets its type.
      const { length, html } = value as Pick<SerializedDocument, "length" | "html">;
      if (length > maxBytes) throw tooLarge(length);
      slices.push(html);
      from += html.length;
      if (html === "" || from >= length) return slices.join("");
    }
  }
}

/** Runs in the page: a part of the text that does not end between the two halves of a character. */
function sliceHtml(html: string, from: number, size: number): string {
  const last = html.charCodeAt(from + size - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return html.slice(from, from + size - (isHalf ? 1 : 0));
}

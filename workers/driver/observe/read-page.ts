import { setImmediate as nextTask } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { type ReadRequest, type ReadResponse, ReadResponseSchema } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../../src/platform/deadline.ts";
import { fail } from "../../../src/platform/errors.ts";
import { crashedFailure } from "../../pages/tab.ts";
import type { TextMask } from "../../variables/text-mask.ts";
import { browserFailure } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import { wholeFrame } from "../elements/locator.ts";
import { callForObject, callPage, childFrame, type FrameSession, mainFrame } from "../elements/page-world.ts";
import { contentFrameIdOf, reachElement } from "../elements/reach.ts";
import { findClosedRoots } from "./closed-roots.ts";
import { convertToMarkdown, type MarkdownScene } from "./markdown.ts";

/** Default size of a part in bytes. */
const usualBytes = 24_576;

/** Maximum characters of HTML for a page with its frames. */
const maxContent = 4 * 1024 * 1024;
/** Share of the remaining time for a document, and for each child frame. A frame that takes longer is left out. */
const contentShare = 0.4;

/** Maximum number and depth of frames. Further frames are left out. */
const maxFrames = 32;
const maxDepth = 4;

/** Characters processed before the thread runs the tasks of other sessions. */
const writtenAtOnce = 65_536;

/**
 * Names by which a document, or an element by ref, is read: the reader for `findClosedRoots`, and functions of the
 * page's script.
 */
const readers = {
  document: { hosts: "content", holder: "contentHolder", forget: "forgetContent" },
  element: { hosts: "snapshot", holder: "elementHolder", forget: "forgetElement" },
} as const;

/** State of reading one page. */
interface Reading {
  readonly scene: Scene & MarkdownScene;
  readonly mask: TextMask | undefined;
  /** Prefix of each frame's placeholder, and the key of the frames in each document's script. Pages cannot read it. */
  readonly token: string;
  framesLeft: number;
  /** Characters left until `maxContent`. */
  left: number;
}

/** Returns a part of the page's text, or of an element's text, as Markdown. */
export async function readPage(scene: Scene & MarkdownScene, request: ReadRequest): Promise<ReadResponse> {
  const { sessionPage, refs, secrets } = scene;
  const { ref, offset = 0, maxBytes = usualBytes } = request;
  if (sessionPage.isCrashed) throw crashedFailure();
  const locator = ref === undefined ? wholeFrame([], "") : refs.locatorOf(ref, sessionPage.id, "");
  const element = typeof locator.selector === "string" ? null : locator.selector;
  const mask = secrets.textMask();
  try {
    const markdown = await reachElement(scene, locator, async ({ inner }) => {
      const token = `frame-${crypto.randomUUID()}-`;
      const reading: Reading = { scene, mask, token, framesLeft: maxFrames, left: maxContent };
      const seen = await readDocument(reading, inner, element, 0);
      if ("hindrance" in seen) return seen;
      return { value: await convertToMarkdown(scene, mainFrame(scene), { ...seen.value, isPart: element !== null }) };
    });
    return create(ReadResponseSchema, cutPart(markdown.toWellFormed(), offset, maxBytes));
  } catch (thrown) {
    throw browserFailure(thrown);
  }
}

/** Reads the content of a document and its frames as HTML. */
async function readDocument(
  reading: Reading,
  frame: FrameSession,
  ref: Parameters<typeof callContent>[2],
  depth: number,
) {
  const { scene, token } = reading;
  const { hosts, holder, forget } = ref ? readers.element : readers.document;
  let isKept = true;
  try {
    let seen = await callContent(reading, frame, ref);
    if ("value" in seen && seen.value.doubtful > 0 && (await findClosedRoots(scene, frame, hosts)))
      seen = await callContent(reading, frame, ref);
    if ("hindrance" in seen) return seen;
    const { parts, frames, isCut, url } = seen.value;
    isKept = frames > 0;
    if (isCut) throw tooLarge();
    reading.left -= parts.length;
    const html = await writeParts(parts.split("\u0001"), reading.mask);
    const inner =
      depth < maxDepth && frames > 0 ? await readFrames(reading, { frame, holder, count: frames }, depth) : [];
    const marks = new RegExp(`${token}(\\d+);`, "g");
    return { value: { html: html.replace(marks, (_, index) => inner[Number(index)] ?? ""), url } };
  } finally {
    if (isKept) callPage(scene, frame, forget, token).catch(() => undefined);
  }
}

async function callContent(
  { scene, token, left }: Reading,
  frame: FrameSession,
  ref: { readonly epoch: number; readonly number: number } | null,
) {
  const options = { token, limit: left, timeMs: contentShare * scene.progress.remaining() };
  if (ref) return callPage(scene, frame, "elementContent", ref, options);
  return { value: await callPage(scene, frame, "documentContent", options) };
}

/** A document with child frames to read. */
interface ReadParent {
  readonly frame: FrameSession;
  readonly holder: "contentHolder" | "elementHolder";
  /** Number of child frames. */
  readonly count: number;
}

function readFrames(reading: Reading, { frame, holder, count }: ReadParent, depth: number): Promise<string[]> {
  const { scene, token } = reading;
  const read = async (index: number): Promise<string> => {
    const { objectId } = await callForObject(scene, frame, holder, token, index);
    const frameId = objectId && (await contentFrameIdOf(scene, frame, objectId));
    if (!frameId) return "";
    const seen = await readDocument(reading, childFrame(scene, frameId), null, depth + 1);
    return "value" in seen ? seen.value.html : "";
  };
  const shown = Math.min(count, reading.framesLeft);
  reading.framesLeft -= shown;
  return Promise.all(
    Array.from({ length: shown }, (_, index) =>
      within(
        read(index).catch((thrown) => {
          // A failing frame is left out. An aborted command fails the reading.
          if (scene.progress.signal.aborted) throw thrown;
          return "";
        }),
        contentShare * scene.progress.remaining(),
        "",
      ),
    ),
  );
}

/** Joins alternating markup and texts to HTML. Texts are masked before the Markdown conversion adds its own escapes. */
async function writeParts(parts: readonly string[], mask: TextMask | undefined): Promise<string> {
  const written: string[] = [];
  let left = writtenAtOnce;
  for (const [index, part] of parts.entries()) {
    written.push(index % 2 === 0 ? part : escapeText(mask ? mask.apply(part) : part));
    left -= part.length;
    if (left > 0) continue;
    await nextTask();
    left = writtenAtOnce;
  }
  return written.join("");
}

const escapeText = (text: string): string =>
  /[&<>"]/.test(text)
    ? text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
    : text;

const tooLarge = () =>
  fail(
    "driver-error",
    {},
    { detail: "the page is too large to read as a whole: observe it, and read parts of it by ref" },
  );

/**
 * Returns the part from `offset` that takes at most `room` bytes. The part ends at the end of a line, unless that would
 * make the part less than half as long. Offsets are in code points.
 */
function cutPart(markdown: string, offset: number, room: number): Pick<ReadResponse, "markdown" | "nextOffset"> {
  let from = 0;
  for (let skipped = 0; skipped < offset && from < markdown.length; skipped += 1) from += sizeAt(markdown, from);
  let end = from;
  for (let left = room; end < markdown.length; end += sizeAt(markdown, end)) {
    left -= bytesOf(markdown.codePointAt(end) ?? 0);
    if (left < 0) break;
  }
  if (end === markdown.length) return { markdown: markdown.slice(from) };
  const line = markdown.lastIndexOf("\n", end - 1) + 1;
  const part = markdown.slice(from, line > (from + end) / 2 ? line : end);
  let count = 0;
  for (const _point of part) count += 1;
  return { markdown: part, nextOffset: offset + count };
}

const sizeAt = (text: string, index: number): number => ((text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1);

const bytesOf = (point: number): number => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);

import { within } from "../../../src/platform/deadline.ts";
import type { DocumentSnapshot, SnapshotOptions } from "../../injected/document-snapshot.ts";
import type { Ref } from "../../injected/page-refs.ts";
import { hasQuotedText, plain } from "../../injected/plain-text.ts";
import type { NestedFrame } from "../../injected/snapshot-lines.ts";
import type { TextMask } from "../../variables/text-mask.ts";
import { callForObject, callPage, childFrame, type ElementScene, type FrameSession } from "../elements/page-world.ts";
import { contentFrameIdOf } from "../elements/reach.ts";
import type { RefRegistry } from "../elements/ref-registry.ts";
import { findClosedRoots } from "./closed-roots.ts";
import { findListeners, mayFindListeners } from "./press-listeners.ts";

/** Maximum number and depth of visited frames. */
const maxFrames = 32;
const maxDepth = 4;

/**
 * Longest waits in milliseconds for the listeners of the main frame (`page`) and of a child frame (`inner`). On an idle
 * machine, a query takes a few milliseconds.
 */
const listenersMs = { page: 1_000, inner: 250 };

/** Longest time in milliseconds for a child frame. A frame that takes longer is left out. */
const frameMs = 1_000;

export interface PageSnapshotOptions extends Pick<SnapshotOptions, "isWhole" | "find" | "room" | "timeMs"> {
  /** Masks secrets before matches are selected. Otherwise a client could probe a secret by searching for its text. */
  readonly mask: TextMask | undefined;
}

export interface PageSnapshot extends Pick<DocumentSnapshot, "title" | "scroll" | "height"> {
  readonly lines: readonly string[];
  readonly isCut: boolean;
}

/** Position of a frame in the viewport of the page, and the visible part of the frame. */
export type FramePosition = Pick<SnapshotOptions, "clip" | "origin">;

/** State shared by the snapshots of all frames. */
interface SnapshotWalk {
  /** Positions of the main frame and of child frames in view, by the epoch of their documents. */
  readonly positions: Map<number, FramePosition>;
  readonly scene: ElementScene;
  readonly refs: RefRegistry;
  readonly options: PageSnapshotOptions;
  framesLeft: number;
}

/** Takes a snapshot of a frame's document and its child frames. */
export async function snapshotPage(
  scene: ElementScene,
  frame: FrameSession,
  refs: RefRegistry,
  options: PageSnapshotOptions,
): Promise<PageSnapshot & Pick<SnapshotWalk, "positions">> {
  const positions: SnapshotWalk["positions"] = new Map();
  const walk = { scene, refs, options, positions, framesLeft: maxFrames };
  return { ...(await snapshotFrame(walk, frame, [], { clip: null, origin: { x: 0, y: 0 } })), positions };
}

async function snapshotFrame(
  walk: SnapshotWalk,
  frame: FrameSession,
  framePath: readonly Ref[],
  { clip, origin }: FramePosition,
): Promise<PageSnapshot> {
  const { scene, refs, options } = walk;
  const epoch = refs.allocate();
  const { mask, ...sought } = options;
  const whole = { ...sought, epoch, clip, origin, isTentative: mask !== undefined, isAgain: false };
  const listen = () => sought.find === "" && findListeners(scene, frame, listenersMs[frame.isMain ? "page" : "inner"]);
  // A query that will probably find nothing runs at the same time as the snapshot. Any other query must run first.
  const isLast = !mayFindListeners(frame);
  if (!isLast) await listen();
  let [snapshot, isOutdated] = await Promise.all([callPage(scene, frame, "takeSnapshot", whole), isLast && listen()]);
  if (snapshot.doubtful > 0 && (await findClosedRoots(scene, frame, "snapshot"))) isOutdated = true;
  if (isOutdated) snapshot = await callPage(scene, frame, "takeSnapshot", { ...whole, isAgain: true });
  if (snapshot.epoch !== epoch) refs.release(epoch);
  if (clip || framePath.length === 0) walk.positions.set(snapshot.epoch, { clip, origin });
  refs.register(snapshot.epoch, { pageId: scene.sessionPage.id, frame: framePath });
  const lines = mask ? await numberMatches(walk, frame, mask, snapshot) : snapshot.lines;
  const isDeep = framePath.length >= maxDepth;
  const shown = isDeep ? [] : snapshot.frames.slice(0, walk.framesLeft);
  walk.framesLeft -= shown.length;
  const inner = await Promise.all(
    shown.map((each) => within(snapshotChild(walk, frame, [...framePath, each.ref], each), frameMs, undefined)),
  );
  const { title, scroll, height } = snapshot;
  const isCut = snapshot.isCut || shown.length < snapshot.frames.length || inner.some((each) => each?.isCut ?? true);
  return { lines: merge(lines, snapshot.frames, inner), isCut, title, scroll, height };
}

/**
 * Returns the lines that still contain the searched text after masking, with numbers for their elements, and the lines
 * of frames. All other lines become undefined.
 */
async function numberMatches(
  { scene, options }: SnapshotWalk,
  frame: FrameSession,
  mask: TextMask,
  { epoch, lines, frames }: DocumentSnapshot,
): Promise<(string | undefined)[]> {
  const wanted = plain(options.find);
  const framed = new Set(frames.map(({ line }) => line));
  const matches = [...lines.keys()].filter(
    (index) => hasQuotedText(mask.apply(lines[index] ?? ""), wanted) && !framed.has(index),
  );
  const numbers = await callPage(scene, frame, "numberFound", epoch, matches);
  const shown = new Map(matches.map((line, at) => [line, numbers[at]]));
  const unnumbered = /^( *- [a-z]+(?: "(?:[^"\\]|\\.)*")?(?: \([a-z]+: [a-z0-9#-]+\))? ref=s\d+e)0/;
  return lines.map((line, index) => {
    if (framed.has(index)) return line;
    return shown.has(index) ? line.replace(unnumbered, (_, before) => `${before}${shown.get(index)}`) : undefined;
  });
}

/** Takes the snapshot of a child frame. Returns undefined if the frame is out of scope, is gone or cannot be read. */
async function snapshotChild(
  walk: SnapshotWalk,
  frame: FrameSession,
  framePath: readonly Ref[],
  { ref, clip, origin }: NestedFrame,
): Promise<PageSnapshot | undefined> {
  const { scene } = walk;
  // A frame out of view is included only in whole-page snapshots and in searches.
  if (!clip && !walk.options.isWhole && walk.options.find === "") return undefined;
  try {
    const { objectId } = await callForObject(scene, frame, "elementOf", ref);
    const frameId = objectId && (await contentFrameIdOf(scene, frame, objectId));
    return frameId ? await snapshotFrame(walk, childFrame(scene, frameId), framePath, { clip, origin }) : undefined;
  } catch (thrown) {
    // A failing frame is left out. An aborted command fails the snapshot.
    if (scene.progress.signal.aborted) throw thrown;
    return undefined;
  }
}

/** Inserts the lines of child frames below their frame's line. Frames without lines are dropped. */
function merge(
  lines: readonly (string | undefined)[],
  frames: readonly NestedFrame[],
  inner: readonly (PageSnapshot | undefined)[],
): string[] {
  const byLine = new Map(frames.map((frame, index) => [frame.line, { frame, snapshot: inner[index] }]));
  return lines.flatMap((line, index) => {
    const at = byLine.get(index);
    if (line === undefined) return [];
    if (!at) return [line];
    const indent = "  ".repeat(Math.min(at.frame.indent, 12));
    const below = at.snapshot?.lines.map((each) => `${indent}${each}`) ?? [];
    return below.length > 0 ? [line, ...below] : [];
  });
}

import { within } from "../../../src/platform/deadline.ts";
import type { DocumentSnapshot, NestedFrame, SnapshotOptions } from "../../injected/document-snapshot.ts";
import type { Ref } from "../../injected/page-refs.ts";
import { plain, says } from "../../injected/plain-text.ts";
import type { TextMask } from "../../variables/text-mask.ts";
import { callForObject, callPage, childFrame, type ElementScene, type FrameSession } from "../elements/page-world.ts";
import { frameHeldBy } from "../elements/reach.ts";
import type { RefRegistry } from "../elements/ref-registry.ts";
import { findClosedRoots } from "./closed-roots.ts";

/** Maximum number and depth of visited frames. */
const maxFrames = 32;
const deepest = 4;

/** Longest time for a frame. A frame that hangs is left out. */
const frameMs = 1_000;

export interface PageSnapshotOptions extends Pick<SnapshotOptions, "isWhole" | "find" | "room" | "timeMs"> {
  /** Masks secrets that a search must not match: a client could probe them. */
  readonly mask: TextMask | undefined;
}

export interface PageSnapshot extends Pick<DocumentSnapshot, "title" | "scroll" | "height"> {
  readonly lines: readonly string[];
  readonly isCut: boolean;
}

/** State shared by the snapshots of all frames. */
interface Sight {
  readonly scene: ElementScene;
  readonly refs: RefRegistry;
  readonly wish: PageSnapshotOptions;
  framesLeft: number;
}

/** Takes a snapshot of a frame's document and its child frames. */
export function lookAt(
  scene: ElementScene,
  frame: FrameSession,
  refs: RefRegistry,
  wish: PageSnapshotOptions,
): Promise<PageSnapshot> {
  return lookInto({ scene, refs, wish, framesLeft: maxFrames }, frame, [], null);
}

async function lookInto(
  visibility: Sight,
  frame: FrameSession,
  way: readonly Ref[],
  clip: SnapshotOptions["clip"],
): Promise<PageSnapshot> {
  const { scene, refs, wish } = visibility;
  const epoch = refs.offer();
  const { mask, ...sought } = wish;
  const whole = { ...sought, epoch, clip, isTentative: mask !== undefined, isAgain: false };
  let looked: DocumentSnapshot = await callPage(scene, frame, "look", whole);
  if (looked.doubtful > 0 && (await findClosedRoots(scene, frame)))
    looked = await callPage(scene, frame, "look", { ...whole, isAgain: true });
  if (looked.epoch !== epoch) refs.giveBack(epoch);
  refs.note(looked.epoch, { pageId: scene.sessionPage.id, frame: way });
  const lines = mask ? await tellFound(visibility, frame, mask, looked) : looked.lines;
  const isDeep = way.length >= deepest;
  const shown = isDeep ? [] : looked.frames.slice(0, visibility.framesLeft);
  visibility.framesLeft -= shown.length;
  const inner = await Promise.all(
    shown.map((each) => within(lookIntoFrame(visibility, frame, [...way, each.ref], each), frameMs, undefined)),
  );
  const { title, scroll, height } = looked;
  const isCut = looked.isCut || shown.length < looked.frames.length || inner.some((each) => each?.isCut ?? true);
  return { lines: merge(lines, looked.frames, inner), isCut, title, scroll, height };
}

/**
 * Returns the matches whose masked line still contains the text, and numbers their elements. All other lines become
 * undefined.
 */
async function tellFound(
  { scene, wish }: Sight,
  frame: FrameSession,
  mask: TextMask,
  { epoch, lines, frames }: DocumentSnapshot,
): Promise<(string | undefined)[]> {
  const wanted = plain(wish.find);
  const framed = new Set(frames.map(({ line }) => line));
  const told = [...lines.keys()].filter((index) => says(mask.apply(lines[index] ?? ""), wanted) && !framed.has(index));
  const numbers = await callPage(scene, frame, "numberFound", epoch, told);
  const shown = new Map(told.map((line, at) => [line, numbers[at]]));
  const unnumbered = /^( *- [a-z]+(?: "(?:[^"\\]|\\.)*")? ref=s\d+e)0/;
  return lines.map((line, index) => {
    if (framed.has(index)) return line;
    return shown.has(index) ? line.replace(unnumbered, (_, before) => `${before}${shown.get(index)}`) : undefined;
  });
}

/** Takes the snapshot of a child frame. Returns undefined if the frame is gone or cannot be read. */
async function lookIntoFrame(
  visibility: Sight,
  frame: FrameSession,
  way: readonly Ref[],
  { ref, clip }: NestedFrame,
): Promise<PageSnapshot | undefined> {
  const { scene } = visibility;
  // An invisible frame is part of whole-page snapshots and searches only.
  if (!clip && !visibility.wish.isWhole && visibility.wish.find === "") return undefined;
  try {
    const { objectId } = await callForObject(scene, frame, "elementOf", ref);
    const frameId = objectId && (await frameHeldBy(scene, frame, objectId));
    return frameId ? await lookInto(visibility, childFrame(scene, frameId), way, clip) : undefined;
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
  const byLine = new Map(frames.map((frame, index) => [frame.line, { frame, look: inner[index] }]));
  return lines.flatMap((line, index) => {
    const at = byLine.get(index);
    if (line === undefined) return [];
    if (!at) return [line];
    const indent = "  ".repeat(Math.min(at.frame.indent, 12));
    const below = at.look?.lines.map((each) => `${indent}${each}`) ?? [];
    return below.length > 0 ? [line, ...below] : [];
  });
}

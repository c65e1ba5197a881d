import { setTimeout as delay } from "node:timers/promises";
import { within } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { Box } from "../../injected/page-aim.ts";
import type { Named } from "../../injected/page-refs.ts";
import type { Hindrance, Seen } from "../../injected/page-wait.ts";
import { type Aim, notParsed, quoted, selectorsOf, subjectOf } from "./aim.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentLeft,
  type ElementScene,
  type FrameSession,
  InvalidSelector,
  mainFrame,
  type PageScript,
} from "./page-world.ts";

/** Longest wait inside the page. An abandoned wait ends after this time. */
const sliceMs = 2_000;

/** Longest wait for restoring scroll offsets, after the capture. */
const putBackMs = 500;

/** Delay before a retry after the document was replaced or removed. */
const retryMs = 20;

/**
 * Retries an attempt until it succeeds or the command's time is up, across navigations. On timeout, throws the last
 * hindrance. `timeoutMs` is the time of one attempt.
 */
export async function persist<Value>(
  { progress }: Pick<ElementScene, "progress">,
  attempt: (timeoutMs: number) => Promise<Seen<Value>>,
): Promise<Value> {
  let hindrance = "the page did not answer within the timeout";
  do {
    try {
      const seen = await attempt(Math.min(sliceMs, progress.remaining()));
      if ("value" in seen) return seen.value;
      ({ hindrance } = seen);
      if (seen.isFinal) throw fail("conflict", { stale_ref: true }, { detail: `${hindrance}: observe the page again` });
    } catch (thrown) {
      if (!(thrown instanceof DocumentLeft)) throw thrown;
      await progress.race(delay(retryMs));
    }
  } while (!progress.isOver);
  throw fail("session-timeout", {}, { detail: hindrance });
}

/** The frame of an element, and its ancestors, innermost first. */
export interface Way {
  readonly inner: FrameSession;
  readonly outer: readonly FrameSession[];
}

/**
 * Retries an attempt in the frame of an element until it succeeds. `withoutFrame` is the result if a frame is missing;
 * by default frames are awaited.
 */
export function reachElement<Value>(
  scene: ElementScene,
  aim: Aim,
  attempt: (way: Way, timeoutMs: number) => Promise<Seen<Value>>,
  { withoutFrame, subject = subjectOf(aim) }: { withoutFrame?: Seen<Value>; subject?: string } = {},
): Promise<Value> {
  return persist(scene, async (timeoutMs) => {
    try {
      const entered = await enterFrames(scene, aim, withoutFrame ? 0 : timeoutMs);
      if ("hindrance" in entered) return withoutFrame ?? entered;
      const seen = await attempt(entered.value, Math.min(timeoutMs, scene.progress.remaining()));
      return "value" in seen ? seen : { ...seen, hindrance: sentence(seen, aim.selector, subject) };
    } catch (thrown) {
      if (thrown instanceof InvalidSelector) await refuseInvalid(scene, [aim]);
      throw thrown;
    }
  });
}

/** Scrolls an element into view and returns its box in the page's viewport once it is stable. */
export function showElement(scene: ElementScene, aim: Aim): Promise<Box> {
  return reachElement(scene, aim, (way, timeoutMs) => show(scene, way, { selector: aim.selector, timeoutMs }));
}

/** Same as `showElement` while `work` runs. Restores all scroll offsets afterwards. */
export async function whileShown<Value>(
  scene: ElementScene,
  aim: Aim,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  let frames: readonly FrameSession[] = [];
  try {
    const box = await reachElement(scene, aim, async (way, timeoutMs) => {
      frames = [way.inner, ...way.outer];
      await Promise.all(way.outer.map((frame) => callPage(scene, frame, "keepOffsets")));
      return show(scene, way, { selector: aim.selector, timeoutMs, keepsOffsets: true });
    });
    return await work(box);
  } finally {
    const restored = frames.map((frame) => callPage(scene, frame, "putBack"));
    await within(Promise.all(restored), putBackMs, undefined);
  }
}

async function show(
  scene: ElementScene,
  { inner, outer }: Way,
  options: Parameters<PageScript["show"]>[0],
): Promise<Seen<Box>> {
  let seen: Seen<Box> = await callPage(scene, inner, "show", options);
  for (const frame of outer) {
    if ("hindrance" in seen) break;
    const value: Box | null = await callPage(scene, frame, "outerBox", seen.value);
    seen = value ? { value } : { hindrance: "" };
  }
  return seen;
}

/** Resolves the frames that lead to an element. */
async function enterFrames(scene: ElementScene, aim: Aim, timeoutMs: number): Promise<Seen<Way>> {
  let inner = mainFrame(scene);
  const outer: FrameSession[] = [];
  const leading = selectorsOf(aim).slice(0, -1);
  // Checks all selectors first: otherwise a missing frame would hide an invalid selector behind it.
  if (leading.length > 0) await refuseInvalid(scene, [aim]);
  for (const { selector, field } of leading) {
    const found = await callForObject(scene, inner, "findFrame", { selector, timeoutMs });
    if (found.objectId === undefined) {
      const isFinal = typeof selector !== "string";
      return { hindrance: missing(String(found.value), selector, field), isFinal };
    }
    const frameId = await frameHeldBy(scene, inner, found.objectId);
    if (frameId === undefined) throw failFields("validation-failed", { [field]: "is not a frame" });
    outer.unshift(inner);
    inner = childFrame(scene, frameId);
  }
  return { value: { inner, outer } };
}

/** Throws `validation-failed` for the first invalid selector. */
async function refuseInvalid(scene: ElementScene, aims: readonly Aim[]): Promise<void> {
  const selectors = aims.flatMap(selectorsOf).flatMap(({ selector, field }) => {
    return typeof selector === "string" ? [{ selector, field }] : [];
  });
  const main = mainFrame(scene);
  const index = await callPage(
    scene,
    main,
    "firstInvalid",
    selectors.map(({ selector }) => selector),
  );
  const invalid = selectors[index];
  if (invalid) throw notParsed(invalid.field);
}

/** Describes which frame selector matches nothing. */
function missing(hindrance: string, selector: Named, field: string): string {
  if (hindrance !== "") return `${field} ${hindrance}`;
  return `no element matches ${field}${typeof selector === "string" ? `, ${quoted(selector)}` : ""}`;
}

function sentence({ hindrance }: Hindrance, selector: Named, element: string): string {
  if (hindrance !== "") return `${element} ${hindrance}`;
  return `no element matches ${typeof selector === "string" ? quoted(selector) : element}`;
}

/** Returns the id of the frame that an element contains, if any. Releases the element. */
export async function frameHeldBy(
  { progress }: ElementScene,
  { cdp }: FrameSession,
  objectId: string,
): Promise<string | undefined> {
  try {
    const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId }));
    return node.frameId;
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  }
}

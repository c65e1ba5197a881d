import { setTimeout as delay } from "node:timers/promises";
import { within } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { Box } from "../../injected/page-aim.ts";
import type { Named } from "../../injected/page-refs.ts";
import type { Hindrance, Seen } from "../../injected/page-wait.ts";
import { invalidSelectorFailure, type Locator, quoted, selectorsOf, subjectOf } from "./locator.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentReplaced,
  type ElementScene,
  type FrameSession,
  InvalidSelector,
  mainFrame,
  type PageScript,
} from "./page-world.ts";

/**
 * Longest wait in milliseconds inside the page per attempt. A wait in the page would otherwise continue after its
 * command was aborted.
 */
const sliceMs = 2_000;

/** Longest wait in milliseconds for the page to restore its scroll offsets after a capture. */
const restoreMs = 500;

/** Delay in milliseconds before a retry after the document was replaced or removed. */
const retryMs = 20;

/**
 * Repeats an attempt until the attempt returns a value, also across navigations. Throws `conflict` if a reference is
 * stale, and `session-timeout` with the last hindrance on timeout. An attempt should take at most `timeoutMs`.
 */
export async function retryUntilTimeout<Value>(
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
      if (!(thrown instanceof DocumentReplaced)) throw thrown;
      await progress.race(delay(retryMs));
    }
  } while (!progress.isOver);
  throw fail("session-timeout", {}, { detail: hindrance });
}

/** The frame of an element (`inner`), and the frames around that frame, innermost first (`outer`). */
export interface FrameChain {
  readonly inner: FrameSession;
  readonly outer: readonly FrameSession[];
}

/**
 * Repeats an attempt in the frame of an element until the attempt returns a value. `withoutFrame` is the result if a
 * frame is missing. By default, missing frames are awaited.
 */
export function reachElement<Value>(
  scene: ElementScene,
  locator: Locator,
  attempt: (chain: FrameChain, timeoutMs: number) => Promise<Seen<Value>>,
  { withoutFrame, subject = subjectOf(locator) }: { withoutFrame?: Seen<Value>; subject?: string } = {},
): Promise<Value> {
  return retryUntilTimeout(scene, async (timeoutMs) => {
    try {
      const entered = await enterFrames(scene, locator, withoutFrame ? 0 : timeoutMs);
      if ("hindrance" in entered) return withoutFrame ?? entered;
      const seen = await attempt(entered.value, Math.min(timeoutMs, scene.progress.remaining()));
      return "value" in seen ? seen : { ...seen, hindrance: describeHindrance(seen, locator.selector, subject) };
    } catch (thrown) {
      if (thrown instanceof InvalidSelector) await rejectInvalidSelectors(scene, [locator]);
      throw thrown;
    }
  });
}

/** Scrolls an element into view and returns its box in the page's viewport once the box is stable. */
export function showElement(scene: ElementScene, locator: Locator): Promise<Box> {
  return reachElement(scene, locator, (chain, timeoutMs) =>
    show(scene, chain, { selector: locator.selector, timeoutMs }),
  );
}

/**
 * Scrolls an element into view like `showElement`, runs `work`, and restores the scroll offsets of the element's
 * ancestors.
 */
export async function whileShown<Value>(
  scene: ElementScene,
  locator: Locator,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  let frames: readonly FrameSession[] = [];
  try {
    const box = await reachElement(scene, locator, async (chain, timeoutMs) => {
      frames = [chain.inner, ...chain.outer];
      await Promise.all(chain.outer.map((frame) => callPage(scene, frame, "saveOffsets")));
      return show(scene, chain, { selector: locator.selector, timeoutMs, savesOffsets: true });
    });
    return await work(box);
  } finally {
    const restored = frames.map((frame) => callPage(scene, frame, "restoreOffsets"));
    await within(Promise.all(restored), restoreMs, undefined);
  }
}

async function show(
  scene: ElementScene,
  { inner, outer }: FrameChain,
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
async function enterFrames(scene: ElementScene, locator: Locator, timeoutMs: number): Promise<Seen<FrameChain>> {
  let inner = mainFrame(scene);
  const outer: FrameSession[] = [];
  const leading = selectorsOf(locator).slice(0, -1);
  // Checks all selectors first: otherwise a missing frame would hide an invalid selector after the frame's selector.
  if (leading.length > 0) await rejectInvalidSelectors(scene, [locator]);
  for (const { selector, field } of leading) {
    const found = await callForObject(scene, inner, "findFrame", { selector, timeoutMs });
    if (found.objectId === undefined) {
      const isFinal = typeof selector !== "string";
      return { hindrance: describeMissingFrame(String(found.value), selector, field), isFinal };
    }
    const frameId = await contentFrameIdOf(scene, inner, found.objectId);
    if (frameId === undefined) throw failFields("validation-failed", { [field]: "is not a frame" });
    outer.unshift(inner);
    inner = childFrame(scene, frameId);
  }
  return { value: { inner, outer } };
}

/** Throws `validation-failed` for the first invalid selector. */
async function rejectInvalidSelectors(scene: ElementScene, aims: readonly Locator[]): Promise<void> {
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
  if (invalid) throw invalidSelectorFailure(invalid.field);
}

/** Describes why no frame was found for a frame selector or reference. */
function describeMissingFrame(hindrance: string, selector: Named, field: string): string {
  if (hindrance !== "") return `${field} ${hindrance}`;
  return `no element matches ${field}${typeof selector === "string" ? `, ${quoted(selector)}` : ""}`;
}

function describeHindrance({ hindrance }: Hindrance, selector: Named, element: string): string {
  if (hindrance !== "") return `${element} ${hindrance}`;
  return `no element matches ${typeof selector === "string" ? quoted(selector) : element}`;
}

/** Returns the id of the frame that an element contains, if any. Releases the remote object `objectId`. */
export async function contentFrameIdOf(
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

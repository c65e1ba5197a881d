import { setTimeout as delay } from "node:timers/promises";
import { within } from "../../../src/platform/deadline.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { CdpSession } from "../../cdp/cdp-session.ts";
import type { Act, Box } from "../../injected/page-aim.ts";
import type { Named } from "../../injected/page-refs.ts";
import type { PageScript } from "../../injected/page-script.ts";
import type { Hindrance, Seen } from "../../injected/page-wait.ts";
import { type Aim, notParsed, quoted, selectorsOf, subjectOf } from "./aim.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentLeft,
  type ElementScene,
  type Frame,
  InvalidSelector,
  mainFrame,
} from "./page-world.ts";

/** How long the page is left to wait by itself: a wait that nobody waits for any more ends with it. */
const sliceMs = 2_000;

/** How long scrolling back may take; who waits for a picture has it already. */
const putBackMs = 500;

/** How soon a document that has just been left is looked for again. */
const retryMs = 20;

/**
 * Tries something until it succeeds, the documents that it concerns being left or not, or the command's time is up: then
 * what was in the way last is told. `timeoutMs` is what an attempt may take.
 */
export async function persist<Value>(
  { progress }: Pick<ElementScene, "progress">,
  attempt: (timeoutMs: number) => Promise<Seen<Value>>,
): Promise<Value> {
  let hindrance = "the page did not answer in time";
  do {
    try {
      const seen = await attempt(Math.min(sliceMs, progress.remaining()));
      if ("value" in seen) return seen.value;
      ({ hindrance } = seen);
      if (seen.isFinal) throw fail("conflict", { stale_ref: true }, { detail: `${hindrance}: look at the page again` });
    } catch (thrown) {
      if (!(thrown instanceof DocumentLeft)) throw thrown;
      await progress.race(delay(retryMs));
    }
  } while (!progress.isOver);
  throw fail("session-timeout", {}, { detail: hindrance });
}

/** The frame that an element is in, and those around it, from the inside out. */
export interface Way {
  readonly inner: Frame;
  readonly outer: readonly Frame[];
}

/**
 * Does something in the frame of an element, until it sees there what it is to see. `withoutFrame` is what is seen where a
 * frame on the way is not there: without it frames are waited for.
 */
export function reach<Value>(
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

/** Runs a function in the page on an element, once it can be seen; `act` knows nothing but what it is given. */
export function useElement<Args, Value>(
  scene: ElementScene,
  aim: Aim,
  { act, args, isEnabled = false }: { act: Act<Args, Value>; args: Args; isEnabled?: boolean },
): Promise<Value> {
  return reach(scene, aim, ({ inner }, timeoutMs) => {
    const wish = { selector: aim.selector, timeoutMs, isEnabled };
    // The boundary where a function that runs in the page gets its types back.
    return callPage(scene, inner, "use", wish, act as Act<unknown, unknown>, args) as Promise<Seen<Value>>;
  });
}

/** Brings an element into view, once it stands still, and gives its box in the page's viewport. */
export function showElement(scene: ElementScene, aim: Aim): Promise<Box> {
  return reach(scene, aim, (way, timeoutMs) => show(scene, way, { selector: aim.selector, timeoutMs }));
}

/** The same for as long as `work` takes; whatever was scrolled for it goes back in the end. */
export async function whileShown<Value>(
  scene: ElementScene,
  aim: Aim,
  work: (box: Box) => Promise<Value>,
): Promise<Value> {
  let frames: readonly Frame[] = [];
  try {
    const box = await reach(scene, aim, async (way, timeoutMs) => {
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
  wish: Parameters<PageScript["show"]>[0],
): Promise<Seen<Box>> {
  let seen: Seen<Box> = await callPage(scene, inner, "show", wish);
  for (const frame of outer) {
    if ("hindrance" in seen) break;
    const value: Box | null = await callPage(scene, frame, "outerBox", seen.value);
    seen = value ? { value } : { hindrance: "" };
  }
  return seen;
}

/** An element that stays in its page, with our session of it: it has to be released. */
export interface HeldElement {
  readonly cdp: CdpSession;
  readonly objectId: string;
}

/** Waits for a match, seen or not, and holds the first element that `choose` gives in the page for one; null for none. */
export function holdElement(
  scene: ElementScene,
  aim: Aim,
  choose: (match: Element) => Element | undefined,
): Promise<HeldElement | null> {
  return reach<HeldElement | null>(scene, aim, async ({ inner }, timeoutMs) => {
    const { objectId, value } = await callForObject(
      scene,
      inner,
      "pick",
      { selector: aim.selector, timeoutMs },
      choose,
    );
    if (objectId !== undefined) return { value: { cdp: inner.cdp, objectId } };
    if (value === false) return { value: null };
    return { hindrance: String(value), isFinal: value !== "" };
  });
}

/** Walks into the frames that lead to an element. */
async function enterFrames(scene: ElementScene, aim: Aim, timeoutMs: number): Promise<Seen<Way>> {
  let inner = mainFrame(scene);
  const outer: Frame[] = [];
  const leading = selectorsOf(aim).slice(0, -1);
  // Of a frame that is not there yet nobody would learn that a selector behind it is none.
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

/** Refuses selectors that are none, naming the field of the first. */
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

/** Says which of the selectors that lead to a frame matches nothing. */
function missing(hindrance: string, selector: Named, field: string): string {
  if (hindrance !== "") return `${field} ${hindrance}`;
  return `no element matches ${field}${typeof selector === "string" ? `, ${quoted(selector)}` : ""}`;
}

function sentence({ hindrance }: Hindrance, selector: Named, element: string): string {
  if (hindrance !== "") return `${element} ${hindrance}`;
  return `no element matches ${typeof selector === "string" ? quoted(selector) : element}`;
}

/** The frame that an element holds, if it does; the element is released. */
export async function frameHeldBy(
  { progress }: ElementScene,
  { cdp }: Frame,
  objectId: string,
): Promise<string | undefined> {
  try {
    const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId }));
    return node.frameId;
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  }
}

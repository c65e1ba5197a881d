import { fail } from "../../../src/platform/errors.ts";
import type { GuardedInput, Released } from "../../injected/page-guard.ts";
import type { ViewportPoint } from "../../injected/page-visibility.ts";
import type { ElementOptions, Seen } from "../../injected/page-wait.ts";
import { type Locator, subjectOf } from "./locator.ts";
import { callIfLoaded, callPage, type ElementScene } from "./page-world.ts";
import { type FrameChain, reachElement } from "./reach.ts";

/**
 * Longest wait in milliseconds for the element that contains a frame. After this time, the point within the innermost
 * frame is determined again.
 */
const throughMs = 200;

interface ClickOptions {
  readonly gesture: GuardedInput;
  readonly isEnabled: boolean;
  /** Whether an earlier attempt missed the element or found its frame out of view. See `GuardOptions`. */
  readonly isDoubtful: boolean;
}

interface HitOutcome {
  /**
   * Whether to repeat the input: it reached no element or another element, or the element moved away during the press.
   * A press on another element was blocked.
   */
  readonly hasMissed: boolean;
  /** Title of the page after the input. Undefined if the main document is gone. */
  readonly title: string | undefined;
}

/** A point at which to click or hover an element. A guard in the page blocks a press on any other element. */
interface HitPoint {
  readonly point: ViewportPoint;
  /** Removes the guard and returns the result of the hit. */
  release(): Promise<HitOutcome>;
}

/**
 * Calls `dispatch` with an element's point once the element is visible, stable, in view and uncovered. Retries if the
 * input missed the element.
 *
 * Returns the title of the page after the page handled the input. Undefined if unknown, for example if the page is
 * navigating.
 */
export async function dispatchClick(
  scene: ElementScene,
  locator: Locator,
  options: Pick<ClickOptions, "gesture" | "isEnabled">,
  dispatch: (point: ViewportPoint) => Promise<unknown>,
): Promise<string | undefined> {
  for (let isDoubtful = false; ; isDoubtful = true) {
    const { point, release } = await findHitPoint(scene, locator, { ...options, isDoubtful });
    const { tab } = scene.sessionPage;
    const { requested, started } = tab;
    await dispatch(point);
    // The input may have started a navigation, during which the page does not answer.
    const isLeaving = () => tab.requested > requested || tab.started > started;
    const outcome = await tab.changes.before(release(), isLeaving, scene.progress);
    if (!outcome?.hasMissed) return outcome?.title;
  }
}

async function findHitPoint(scene: ElementScene, locator: Locator, click: ClickOptions): Promise<HitPoint> {
  let isOutside = false;
  const hitPoint = await reachElement(scene, locator, async (chain, timeoutMs): Promise<Seen<HitPoint>> => {
    const attempt = { ...click, isDoubtful: click.isDoubtful || isOutside };
    if (isOutside) await callPage(scene, chain.inner, "reveal", locator);
    const seen = await pointOf(scene, chain, { selector: locator.selector, timeoutMs, ...attempt });
    if ("value" in seen) return { value: { point: seen.value, release: () => release(scene, chain) } };
    isOutside = chain.outer.length > 0;
    if (isOutside) await removeGuards(scene, chain);
    return seen;
  });
  // A press after the timeout would arrive after the command's response.
  if (!scene.progress.isOver) return hitPoint;
  throw fail("session-timeout", {}, { detail: `${subjectOf(locator)} was not ready in time` });
}

/** Determines the point of an element, and converts it through all enclosing frames to a point of the page. */
async function pointOf(
  scene: ElementScene,
  { inner, outer }: FrameChain,
  options: ElementOptions & ClickOptions,
): Promise<Seen<ViewportPoint>> {
  let seen: Seen<ViewportPoint> = await callPage(scene, inner, "aim", options);
  for (const frame of outer) {
    if ("hindrance" in seen) break;
    const { gesture, isDoubtful } = options;
    const through = { point: seen.value, timeoutMs: throughMs, gesture, isDoubtful };
    const outside = await callPage(scene, frame, "aimThrough", through);
    if ("hindrance" in outside) return outside;
    seen = outside.value ? { value: outside.value } : { hindrance: "is outside of the viewport" };
  }
  return seen;
}

async function release(scene: ElementScene, chain: FrameChain): Promise<HitOutcome> {
  const results = await removeGuards(scene, chain);
  // A replaced document has no result. The input counts as received. The last result is that of the main document.
  const { lostAt, title } = results.at(-1) ?? {};
  const isLost = lostAt !== undefined && !(await isInFrame(scene, lostAt));
  return { hasMissed: isLost || results.some((each) => each?.verdict === "missed"), title };
}

function removeGuards(scene: ElementScene, { inner, outer }: FrameChain): Promise<(Released | undefined)[]> {
  return Promise.all([inner, ...outer].map((frame) => callIfLoaded(scene, frame, "release")));
}

/**
 * Whether a point of the page's document is inside a frame, possibly within a closed shadow root. The document does not
 * receive events inside of frames. If the browser cannot determine the frame, returns true, so that the press is not
 * repeated.
 */
async function isInFrame(
  { sessionPage: { cdp, targetId }, progress }: ElementScene,
  { x, y }: ViewportPoint,
): Promise<boolean> {
  try {
    const location = { x: Math.floor(x), y: Math.floor(y), includeUserAgentShadowDOM: true };
    const { backendNodeId, frameId } = await progress.race(cdp.send("DOM.getNodeForLocation", location));
    const { node } = await progress.race(cdp.send("DOM.describeNode", { backendNodeId }));
    return frameId !== targetId || node.frameId !== undefined;
  } catch {
    return true;
  }
}

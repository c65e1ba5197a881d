import { fail } from "../../../src/platform/errors.ts";
import type { GuardedInput, Released } from "../../injected/page-guard.ts";
import type { ViewportPoint } from "../../injected/page-visibility.ts";
import type { ElementOptions, Seen } from "../../injected/page-wait.ts";
import { type Aim, subjectOf } from "./aim.ts";
import { callIfKnown, callPage, type ElementScene } from "./page-world.ts";
import { reachElement, type Way } from "./reach.ts";

/** Longest wait for a frame's element before its contents are checked again. */
const throughMs = 200;

interface ClickOptions {
  readonly gesture: GuardedInput;
  readonly isEnabled: boolean;
  /** Whether the page moved during an earlier attempt. */
  readonly isDoubtful: boolean;
}

interface Outcome {
  /** Whether nothing was hit, or another element, whose press was blocked. */
  readonly hasMissed: boolean;
  /** Title of the page afterwards. Undefined if its document is gone. */
  readonly title: string | undefined;
}

/** A point at which to hit an element. A guard in the page blocks a press on any other element. */
interface Aimed {
  readonly point: ViewportPoint;
  /** Removes the guard and returns the result of the hit. */
  release(): Promise<Outcome>;
}

/**
 * Calls `dispatch` with an element's point once the element is visible, stable, in view and uncovered. Retries if the
 * page has meanwhile moved another element to the point.
 *
 * Returns the title of the page after it handled the input. Undefined if the page is navigating.
 */
export async function dispatchClick(
  scene: ElementScene,
  aim: Aim,
  options: Pick<ClickOptions, "gesture" | "isEnabled">,
  dispatch: (point: ViewportPoint) => Promise<unknown>,
): Promise<string | undefined> {
  for (let isDoubtful = false; ; isDoubtful = true) {
    const { point, release } = await aimAt(scene, aim, { ...options, isDoubtful });
    const { tab } = scene.sessionPage;
    const { requested, started } = tab;
    await dispatch(point);
    // The hit may have started a navigation, after which the page answers nothing.
    const isLeaving = () => tab.requested > requested || tab.started > started;
    const outcome = await tab.changes.before(release(), isLeaving, scene.progress);
    if (!outcome?.hasMissed) return outcome?.title;
  }
}

async function aimAt(scene: ElementScene, aim: Aim, click: ClickOptions): Promise<Aimed> {
  let isOutside = false;
  const aimed = await reachElement(scene, aim, async (way, timeoutMs): Promise<Seen<Aimed>> => {
    const attempt = { ...click, isDoubtful: click.isDoubtful || isOutside };
    if (isOutside) await callPage(scene, way.inner, "reveal", aim);
    const seen = await pointOf(scene, way, { selector: aim.selector, timeoutMs, ...attempt });
    if ("value" in seen) return { value: { point: seen.value, release: () => release(scene, way) } };
    isOutside = way.outer.length > 0;
    if (isOutside) await takeAway(scene, way);
    return seen;
  });
  // A press after the command's timeout would follow the command's answer.
  if (!scene.progress.isOver) return aimed;
  throw fail("session-timeout", {}, { detail: `${subjectOf(aim)} was not ready in time` });
}

/** Returns the point of the page at which to hit an element, through all its frames. */
async function pointOf(
  scene: ElementScene,
  { inner, outer }: Way,
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

async function release(scene: ElementScene, way: Way): Promise<Outcome> {
  const said = await takeAway(scene, way);
  // If a document was left, it has no result, and the hit arrived. The last result is that of the main document.
  const { lostAt, title } = said.at(-1) ?? {};
  const isLost = lostAt !== undefined && !(await isInFrame(scene, lostAt));
  return { hasMissed: isLost || said.some((each) => each?.verdict === "missed"), title };
}

function takeAway(scene: ElementScene, { inner, outer }: Way): Promise<(Released | undefined)[]> {
  return Promise.all([inner, ...outer].map((frame) => callIfKnown(scene, frame, "release")));
}

/**
 * Whether a point of the page's document is inside a frame, possibly within a closed shadow root. The document never
 * receives such hits. Returns true if the browser cannot determine the frame.
 */
async function isInFrame(
  { sessionPage: { cdp, targetId }, progress }: ElementScene,
  { x, y }: ViewportPoint,
): Promise<boolean> {
  try {
    const place = { x: Math.floor(x), y: Math.floor(y), includeUserAgentShadowDOM: true };
    const { backendNodeId, frameId } = await progress.race(cdp.send("DOM.getNodeForLocation", place));
    const { node } = await progress.race(cdp.send("DOM.describeNode", { backendNodeId }));
    return frameId !== targetId || node.frameId !== undefined;
  } catch {
    return true;
  }
}

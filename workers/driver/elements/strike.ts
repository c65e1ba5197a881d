import { fail } from "../../../src/platform/errors.ts";
import type { Point } from "../../injected/page-aim.ts";
import type { Released, Stroke } from "../../injected/page-guard.ts";
import type { Seen, Wish } from "../../injected/page-wait.ts";
import { type Aim, subjectOf } from "./aim.ts";
import { callIfKnown, callPage, type ElementScene } from "./page-world.ts";
import { reach, type Way } from "./reach.ts";

/** How long a frame's element may be waited for until all that is in it is looked at again. */
const throughMs = 200;

interface Blow {
  readonly stroke: Stroke;
  /** Only while the element takes input. */
  readonly isEnabled: boolean;
  /** The page has moved under an attempt before. */
  readonly isDoubtful: boolean;
}

/** What a stroke has come to. */
interface Outcome {
  /** Something else was hit, of which the page has not heard then, or nothing at all. */
  readonly hasMissed: boolean;
  /** The title of the page afterwards; undefined where its document has gone. */
  readonly title: string | undefined;
}

/** Where an element is hit, while a guard looks on. */
interface Aimed {
  readonly point: Point;
  /** Takes the guard away. */
  release(): Promise<Outcome>;
}

/**
 * Hits an element by what `dispatch` does at its point: once it is visible, still, in view and uncovered, and again when
 * the page has moved something else there meanwhile. Gives the title of the page when it had handled that; undefined when it
 * is on its way elsewhere.
 */
export async function strike(
  scene: ElementScene,
  aim: Aim,
  wish: Pick<Blow, "stroke" | "isEnabled">,
  dispatch: (point: Point) => Promise<unknown>,
): Promise<string | undefined> {
  for (let isDoubtful = false; ; isDoubtful = true) {
    const { point, release } = await aimAt(scene, aim, { ...wish, isDoubtful });
    const { tab } = scene.sessionPage;
    const { requested, started } = tab;
    await dispatch(point);
    // By what has hit it the page may be on its way elsewhere, and is asked nothing any more.
    const isLeaving = () => tab.requested > requested || tab.started > started;
    const outcome = await tab.changes.before(release(), isLeaving, scene.progress);
    if (!outcome?.hasMissed) return outcome?.title;
  }
}

async function aimAt(scene: ElementScene, aim: Aim, blow: Blow): Promise<Aimed> {
  let isOutside = false;
  const aimed = await reach(scene, aim, async (way, timeoutMs): Promise<Seen<Aimed>> => {
    const attempt = { ...blow, isDoubtful: blow.isDoubtful || isOutside };
    if (isOutside) await callPage(scene, way.inner, "reveal", aim);
    const seen = await pointOf(scene, way, { selector: aim.selector, timeoutMs, ...attempt });
    if ("value" in seen) return { value: { point: seen.value, release: () => release(scene, way) } };
    isOutside = way.outer.length > 0;
    if (isOutside) await takeAway(scene, way);
    return seen;
  });
  // A button that is pressed when the command's time is up would be pressed behind its answer.
  if (!scene.progress.isOver) return aimed;
  throw fail("session-timeout", {}, { detail: `${subjectOf(aim)} was not ready in time` });
}

/** The point of the page at which an element is hit, through all frames that it is in. */
async function pointOf(scene: ElementScene, { inner, outer }: Way, wish: Wish & Blow): Promise<Seen<Point>> {
  let seen: Seen<Point> = await callPage(scene, inner, "aim", wish);
  for (const frame of outer) {
    if ("hindrance" in seen) break;
    const { stroke, isDoubtful } = wish;
    const through = { point: seen.value, timeoutMs: throughMs, stroke, isDoubtful };
    const outside = await callPage(scene, frame, "aimThrough", through);
    if ("hindrance" in outside) return outside;
    seen = outside.value ? { value: outside.value } : { hindrance: "is outside of the viewport" };
  }
  return seen;
}

async function release(scene: ElementScene, way: Way): Promise<Outcome> {
  const said = await takeAway(scene, way);
  // A document that was left by the stroke was hit. The last one is the page's own.
  const { lostAt, title } = said.at(-1) ?? {};
  const isLost = lostAt !== undefined && !(await isInFrame(scene, lostAt));
  return { hasMissed: isLost || said.some((each) => each?.verdict === "missed"), title };
}

function takeAway(scene: ElementScene, { inner, outer }: Way): Promise<(Released | undefined)[]> {
  return Promise.all([inner, ...outer].map((frame) => callIfKnown(scene, frame, "release")));
}

/**
 * Whether a point of the page's document is in some frame, be it in a closed shadow root: what hits that, the document
 * never has. So it is taken to be where the browser does not say.
 */
async function isInFrame(
  { sessionPage: { cdp, targetId }, progress }: ElementScene,
  { x, y }: Point,
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

import type { InteractRequest, Observation, ObserveOptions } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { asFailure } from "../../src/platform/errors.ts";
import { type ActionResult, type ActionScene, interact } from "../driver/actions/interact.ts";
import { type ObserveScene, observe, waitUntilSettled } from "../driver/observe/observe.ts";

/** Result of a command's work, added to its answer. */
export interface WorkResult extends ActionResult {
  readonly httpStatus?: number;
  /** The download, if the navigation started one. */
  readonly download?: { readonly fileName: string };
  /** Number of actions done. */
  readonly done?: number;
  /** Reason why the next action was not done. */
  readonly stopped?: { readonly slug: string; readonly detail: string };
  readonly observation?: Observation;
}

/** Dependencies of actions, and of the observation after the actions. */
type SequenceScene = ActionScene & ObserveScene;

/**
 * Runs actions in sequence, then observes the active page if requested. Throws if the first action fails or the command
 * is aborted. Stops at a later action if the page has closed, crashed or changed its document, if another page has
 * opened, or if the action fails.
 */
export async function actAndObserve(scene: SequenceScene, request: InteractRequest): Promise<WorkResult> {
  const { tab } = scene.sessionPage;
  const { started } = tab;
  let result: WorkResult = await interact(scene, request.action);
  let done = 1;
  const stopBefore = (slug: string, detail: string) => ({ ...result, done, stopped: { slug, detail } });
  for (const { action } of request.next) {
    const { opened = [], page } = result;
    if (tab.isClosed || tab.isCrashed) result = stopBefore("conflict", "the page has closed");
    else if (opened.length > 0) result = stopBefore("conflict", "another page has opened");
    else if (page || tab.started > started) result = stopBefore("conflict", "the page shows another document");
    else {
      try {
        result = { ...result, ...(await interact(scene, action)) };
        done += 1;
        continue;
      } catch (thrown) {
        if (scene.progress.signal.aborted) throw thrown;
        const { slug, detail = slug } = asFailure(thrown);
        result = stopBefore(slug, detail);
      }
    }
    break;
  }
  const observation = request.observe && (await observeAfter(scene, request.observe));
  return { ...result, done, ...(observation && { observation: observation }) };
}

/**
 * Observes the active page once it has settled. Resolves with undefined if observing fails, because the actions are
 * done. Throws only if the command is aborted.
 */
export async function observeAfter(before: SequenceScene, options: ObserveOptions): Promise<Observation | undefined> {
  const { progress, pages } = before;
  const scene = { ...before, sessionPage: pages.active };
  try {
    const begunAt = performance.now();
    await waitUntilSettled(scene);
    const settlingMs = Math.round(performance.now() - begunAt);
    const observation = await observe(scene, options);
    observation.settlingMs = settlingMs;
    return observation;
  } catch (thrown) {
    if (progress.signal.aborted) throw thrown;
    return undefined;
  }
}

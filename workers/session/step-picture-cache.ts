import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { callIfLoaded, mainFrame } from "../driver/elements/page-world.ts";
import { takeModelPicture } from "../driver/observe/model-picture.ts";
import { inputOf } from "../input/page-input.ts";

/** Maximum bytes of screenshots per session, about a hundred. */
const capacity = 8 * 2 ** 20;

/** Maximum milliseconds that a step waits for its screenshot. */
export const pictureMs = 900;

/** A screenshot for the next step, and the state of the page that it shows. */
interface PictureAhead {
  readonly data: Buffer;
  readonly state: string;
}

/** Screenshots taken before the most recent steps of turns. */
export class StepPictureCache {
  readonly #pictures = new Map<string, Buffer>();
  #bytes = 0;
  #ahead: Promise<PictureAhead | undefined> = Promise.resolve(undefined);

  /**
   * Stores the screenshot before a step: the screenshot taken ahead, or a new screenshot if there is none or the page
   * has changed since. Stores nothing if the page has crashed or does not answer in time.
   */
  async take(stepId: string, scene: Scene): Promise<void> {
    if (scene.sessionPage.isCrashed) return;
    const taken = await within(this.#takeAheadOrNow(scene), pictureMs, undefined);
    if (taken) this.keep(stepId, taken.data);
  }

  /** Calls `take` for the screenshot before the next step, while the model chooses that step. */
  takeAhead(take: () => Promise<PictureAhead | undefined>): void {
    this.#ahead = take().catch(() => undefined);
  }

  /** Drops the screenshot taken ahead. */
  dropAhead(): void {
    this.#ahead = Promise.resolve(undefined);
  }

  async #takeAheadOrNow(scene: Scene) {
    const ahead = await this.#ahead;
    this.dropAhead();
    return ahead && ahead.state === (await readState(scene)) ? ahead : takeModelPicture(scene);
  }

  /** Stores a screenshot and evicts the oldest screenshots above the limit. */
  keep(stepId: string, bytes: Buffer): void {
    this.#pictures.set(stepId, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, { length }] of this.#pictures) {
      if (this.#bytes <= capacity) return;
      this.#pictures.delete(oldest);
      this.#bytes -= length;
    }
  }

  /** Returns the screenshot (JPEG) taken before a step. Undefined if none was taken, or if it was evicted. */
  find(stepId: string): Buffer | undefined {
    return this.#pictures.get(stepId);
  }
}

/** Takes the screenshot of a page for a later step. Undefined if the state of the page cannot be read. */
export async function takePictureAhead(scene: Scene): Promise<PictureAhead | undefined> {
  const state = await readState(scene);
  const taken = state === undefined ? undefined : await takeModelPicture(scene);
  return state !== undefined && taken ? { data: taken.data, state } : undefined;
}

/** Returns the state that determines a page's picture, except animations and child frames. Undefined if unreadable. */
async function readState(scene: Scene): Promise<string | undefined> {
  const { sessionPage } = scene;
  const { id, tab, cdp } = sessionPage;
  const view = await callIfLoaded(scene, mainFrame(scene), "viewState");
  return view && JSON.stringify([id, tab.committed, inputOf(cdp).tally.sent, view]);
}

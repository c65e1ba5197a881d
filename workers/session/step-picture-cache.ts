import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { takeModelPicture } from "../driver/observe/model-picture.ts";

/** Maximum bytes of screenshots per session, about a hundred. */
const capacity = 8 * 2 ** 20;

/** Milliseconds that a step waits for its screenshot. */
const patience = 1_000;

/** Screenshots taken before the most recent steps of turns. */
export class StepPictureCache {
  readonly #pictures = new Map<string, Buffer>();
  #bytes = 0;

  /** Takes the screenshot before a step. Continues without a screenshot if the page does not answer in time. */
  async take(stepId: string, scene: Scene): Promise<void> {
    if (scene.sessionPage.isCrashed) return;
    const taken = await within(takeModelPicture(scene), patience, undefined);
    if (taken) this.keep(stepId, taken.data);
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

  /** Returns the JPEG taken before a step, or undefined if no JPEG was taken or it was evicted. */
  find(stepId: string): Buffer | undefined {
    return this.#pictures.get(stepId);
  }
}

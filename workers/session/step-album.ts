import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { takeModelPicture } from "../driver/observe/model-picture.ts";

/** Bytes of pictures that a session keeps: some hundred of them. */
const capacity = 8 * 2 ** 20;

/** For how many milliseconds a step waits for its picture. */
const patience = 1_000;

/** Pictures of what pages showed before the last steps of turns. */
export class StepAlbum {
  readonly #pictures = new Map<string, Buffer>();
  #bytes = 0;

  /** Takes the picture before a step; a page that gives none is acted on all the same. */
  async take(stepId: string, scene: Scene): Promise<void> {
    if (scene.sessionPage.isCrashed) return;
    const taken = await within(takeModelPicture(scene), patience, undefined);
    if (taken) this.keep(stepId, taken.data);
  }

  /** Keeps a picture, in place of the oldest ones where there is no room. */
  keep(stepId: string, bytes: Buffer): void {
    this.#pictures.set(stepId, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, { length }] of this.#pictures) {
      if (this.#bytes <= capacity) return;
      this.#pictures.delete(oldest);
      this.#bytes -= length;
    }
  }

  /** The picture before a step, a JPEG; undefined where none was taken, or so many have been since. */
  find(stepId: string): Buffer | undefined {
    return this.#pictures.get(stepId);
  }
}

import { within } from "../../src/platform/deadline.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { takeModelPicture } from "../driver/observe/model-picture.ts";
import { inputOf } from "../input/page-input.ts";

/** Maximum bytes of screenshots per session, about a hundred. */
const capacity = 8 * 2 ** 20;

/** Milliseconds that a step waits for its screenshot. */
export const stepPictureMs = 1_000;

/** A screenshot taken after a step, for the next step. */
interface NextPicture {
  readonly of: Shown;
  readonly taken: Promise<Buffer | undefined>;
}

/** State of a page, by what usually changes the page: its document and the input sent to it. */
interface Shown {
  readonly page: Scene["sessionPage"];
  readonly started: number;
  readonly sent: number;
}

const shownBy = ({ sessionPage: page }: Scene): Shown => ({
  page,
  started: page.tab.started,
  sent: inputOf(page.cdp).tally.sent,
});

const isSame = (one: Shown, other: Shown): boolean =>
  one.page === other.page && one.started === other.started && one.sent === other.sent;

/** Screenshots taken before the most recent steps of turns. */
export class StepPictureCache {
  readonly #pictures = new Map<string, Buffer>();
  #bytes = 0;
  #next: NextPicture | undefined;

  /**
   * Takes the screenshot for the next step while the model decides on the step. It shows what the model observed.
   * Resolves when the screenshot is taken or has failed.
   */
  async prepare(scene: Scene): Promise<void> {
    if (scene.sessionPage.isCrashed) return;
    const taken = takeModelPicture(scene).then(
      (picture) => picture?.data,
      () => undefined,
    );
    this.#next = { of: shownBy(scene), taken };
    await taken;
  }

  /**
   * Keeps the screenshot before a step: the prepared one, or a new one if the page has changed since. Continues without
   * a screenshot if the page does not answer in time.
   */
  async take(stepId: string, scene: Scene): Promise<void> {
    const next = this.#next;
    this.#next = undefined;
    if (scene.sessionPage.isCrashed) return;
    const prepared =
      next && isSame(next.of, shownBy(scene)) ? await within(next.taken, stepPictureMs, undefined) : undefined;
    const taken = prepared ?? (await within(takeModelPicture(scene), stepPictureMs, undefined))?.data;
    if (taken) this.keep(stepId, taken);
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

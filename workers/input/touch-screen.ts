import type { CdpSession } from "../cdp/cdp-session.ts";
import type { Point } from "./mouse.ts";

/** Touch event types in CDP. */
export type TouchKind = "touchStart" | "touchMove" | "touchEnd" | "touchCancel";

/** A finger of a touch of several fingers. `id` identifies the finger until it is lifted. */
export interface Finger extends Point {
  readonly id: number;
}

/** The touch screen of a page. Each promise resolves when the page has handled the touch. */
export class TouchScreen {
  readonly #cdp: Pick<CdpSession, "send">;
  #isTouched = false;
  /** Fingers that are down during a touch of several fingers. */
  #fingers: readonly Finger[] = [];

  constructor(cdp: Pick<CdpSession, "send">) {
    this.#cdp = cdp;
  }

  start(at: Point): Promise<unknown> {
    this.#isTouched = true;
    return this.#dispatch("touchStart", [at]);
  }

  move(to: Point): Promise<unknown> {
    return this.#dispatch("touchMove", [to]);
  }

  end(): Promise<unknown> {
    this.#isTouched = false;
    return this.#dispatch("touchEnd", []);
  }

  /** Dispatches a touch of several fingers. `fingers` are the fingers that are down after the event. */
  touch(kind: TouchKind, fingers: readonly Finger[]): Promise<unknown> {
    this.#isTouched = fingers.length > 0 && kind !== "touchCancel";
    const lifted = this.#fingers.filter(({ id }) => !fingers.some((finger) => finger.id === id));
    this.#fingers = kind === "touchCancel" ? [] : fingers;
    // If some fingers are lifted, CDP expects the lifted fingers. If all fingers are lifted, CDP expects an empty list.
    return this.#dispatch(kind, kind === "touchEnd" && fingers.length > 0 ? lifted : [...fingers]);
  }

  /** Cancels the touch. Does nothing if the touch has ended. */
  cancel(): void {
    if (!this.#isTouched) return;
    this.#isTouched = false;
    this.#fingers = [];
    // Errors are ignored, because the page may be gone.
    this.#dispatch("touchCancel", []).catch(() => undefined);
  }

  #dispatch(type: TouchKind, touchPoints: Point[]): Promise<unknown> {
    return this.#cdp.send("Input.dispatchTouchEvent", { type, touchPoints });
  }
}

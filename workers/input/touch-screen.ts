import type { CdpSession } from "../wire/cdp-session.ts";
import type { Point } from "./mouse.ts";

/** The touch screen of a page, under one finger. Each promise resolves when the page has handled the touch. */
export class TouchScreen {
  readonly #cdp: Pick<CdpSession, "send">;
  #isTouched = false;

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

  /** Takes the finger away so that nothing comes of the touch. Does nothing after its end. */
  cancel(): void {
    if (!this.#isTouched) return;
    this.#isTouched = false;
    // A page that does not answer has nothing to say about it.
    this.#dispatch("touchCancel", []).catch(() => undefined);
  }

  #dispatch(type: "touchStart" | "touchMove" | "touchEnd" | "touchCancel", touchPoints: Point[]): Promise<unknown> {
    return this.#cdp.send("Input.dispatchTouchEvent", { type, touchPoints });
  }
}

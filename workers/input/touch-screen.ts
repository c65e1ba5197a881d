import type { CdpSession } from "../cdp/cdp-session.ts";
import type { Point } from "./mouse.ts";

/** What fingers do, as the protocol names it. */
export type TouchKind = "touchStart" | "touchMove" | "touchEnd" | "touchCancel";

/** One finger of several. */
export interface Finger extends Point {
  readonly id: number;
}

/** The touch screen of a page, mostly under one finger. Each promise resolves when the page has handled the touch. */
export class TouchScreen {
  readonly #cdp: Pick<CdpSession, "send">;
  #isTouched = false;
  /** Those of several that are down. */
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

  /** Several fingers: `fingers` are those that are down now. */
  touch(kind: TouchKind, fingers: readonly Finger[]): Promise<unknown> {
    this.#isTouched = fingers.length > 0 && kind !== "touchCancel";
    const lifted = this.#fingers.filter(({ id }) => !fingers.some((finger) => finger.id === id));
    this.#fingers = kind === "touchCancel" ? [] : fingers;
    // The protocol names those that are lifted, or none where all are.
    return this.#dispatch(kind, kind === "touchEnd" && fingers.length > 0 ? lifted : [...fingers]);
  }

  /** Takes the finger away so that nothing comes of the touch. Does nothing after its end. */
  cancel(): void {
    if (!this.#isTouched) return;
    this.#isTouched = false;
    this.#fingers = [];
    // A page that does not answer has nothing to say about it.
    this.#dispatch("touchCancel", []).catch(() => undefined);
  }

  #dispatch(type: TouchKind, touchPoints: Point[]): Promise<unknown> {
    return this.#cdp.send("Input.dispatchTouchEvent", { type, touchPoints });
  }
}

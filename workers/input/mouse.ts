import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Bits of `MouseEvent.buttons`. */
const buttonBits = { left: 1, right: 2, middle: 4 } as const;

export type Button = keyof typeof buttonBits;

type DragData = CdpEvents["Input.dragIntercepted"]["data"];

/**
 * The mouse of a page. Drags that the page starts are intercepted and dispatched here, because the browser would pass
 * them to a desktop environment, which the machine does not have. Each promise resolves when the page has handled the
 * event.
 */
export class Mouse {
  readonly #cdp: Pick<CdpSession, "send" | "on">;
  #at: Point = { x: 0, y: 0 };
  /** Held buttons in the order of their presses. */
  readonly #held = new Set<Button>();
  /** Whether drag interception is enabled. */
  #isIntercepting = false;
  #dragData: DragData | undefined;
  #hasEntered = false;

  constructor(cdp: Pick<CdpSession, "send" | "on">) {
    this.#cdp = cdp;
    cdp.on("Input.dragIntercepted", ({ data }) => {
      if (this.#isIntercepting) this.#dragData = data;
    });
  }

  async move(to: Point): Promise<void> {
    this.#at = to;
    if (this.#dragData) return this.#dragOver(this.#dragData);
    if (this.#held.has("left")) this.#startIntercepting();
    await this.#dispatch("mouseMoved", [...this.#held].at(-1) ?? "none");
  }

  /** Whether the page may have started a drag. If so, `up` first waits until the browser would have reported a drag. */
  get mayBeDragging(): boolean {
    return this.#isIntercepting;
  }

  /** Presses a button. `count` is 2 for the second press of a double click. */
  async down(button: Button = "left", count = 1, at: Point = this.#at): Promise<void> {
    this.#at = at;
    this.#held.add(button);
    await this.#dispatch("mousePressed", button, count);
  }

  /** Releases a held button. During a drag, drops the data instead. Dispatches neither if the button is not held. */
  async up(count = 1, button: Button | undefined = [...this.#held].at(-1), at: Point = this.#at): Promise<void> {
    this.#at = at;
    // Waits for a round trip: if the last move started a drag, the browser reports the drag before it answers.
    if (this.#isIntercepting && !this.#dragData) await this.#cdp.send("Runtime.evaluate", { expression: "0" });
    const dragData = this.#dragData;
    if (dragData && !this.#hasEntered) await this.#dragOver(dragData);
    if (!button || !this.#held.delete(button)) return;
    if (dragData) await this.#drag("drop", dragData);
    else await this.#dispatch("mouseReleased", button, count);
    this.#stopIntercepting();
  }

  /** Clicks `count` times at a point. */
  async click(at: Point, button: Button, count: number): Promise<void> {
    const sent = [this.move(at)];
    for (let nth = 1; nth <= count; nth += 1) sent.push(this.down(button, nth), this.up(nth));
    await Promise.all(sent);
  }

  /** Sends a wheel event at a point. `by` is in CSS pixels. */
  async dispatchWheel(at: Point, by: Point): Promise<void> {
    await this.#cdp.send("Input.dispatchMouseEvent", { type: "mouseWheel", ...at, deltaX: by.x, deltaY: by.y });
  }

  /** Releases all held buttons and cancels a drag. Does nothing if no button is held. */
  cancel(): void {
    for (const button of [...this.#held]) {
      this.#held.delete(button);
      const released = this.#dragData
        ? this.#drag("dragCancel", this.#dragData)
        : this.#dispatch("mouseReleased", button);
      // Errors are ignored, because the page may be gone.
      released.catch(() => undefined);
      this.#stopIntercepting();
    }
  }

  #startIntercepting(): void {
    if (this.#isIntercepting) return;
    this.#isIntercepting = true;
    this.#cdp.send("Input.setInterceptDrags", { enabled: true }).catch(() => undefined);
  }

  #stopIntercepting(): void {
    if (!this.#isIntercepting) return;
    this.#isIntercepting = false;
    this.#dragData = undefined;
    this.#hasEntered = false;
    this.#cdp.send("Input.setInterceptDrags", { enabled: false }).catch(() => undefined);
  }

  async #dragOver(dragData: DragData): Promise<void> {
    if (!this.#hasEntered) await this.#drag("dragEnter", dragData);
    // The drag may have been cancelled meanwhile.
    if (this.#dragData !== dragData) return;
    this.#hasEntered = true;
    await this.#drag("dragOver", dragData);
  }

  #drag(type: "dragEnter" | "dragOver" | "drop" | "dragCancel", data: DragData): Promise<unknown> {
    return this.#cdp.send("Input.dispatchDragEvent", { type, ...this.#at, data });
  }

  #dispatch(type: "mouseMoved" | "mousePressed" | "mouseReleased", button: Button | "none", clickCount = 0) {
    const buttons = [...this.#held].reduce((bits, held) => bits | buttonBits[held], 0);
    return this.#cdp.send("Input.dispatchMouseEvent", { type, ...this.#at, button, buttons, clickCount });
  }
}

import type { InputEvent, SentFinger } from "./messages.ts";
import type { Picture } from "./picture.ts";

/** Dependencies of the handlers of mouse and touch input. */
export interface PointerParts {
  readonly canvas: HTMLCanvasElement;
  readonly picture: Picture;
  /** Whether the viewer has control. Without control, input is not sent, and the picture scrolls and zooms as usual. */
  hasControl(): boolean;
  push(event: InputEvent): void;
  /** Called when the mouse is pressed on the picture, to move the keyboard focus there. */
  onPress(): void;
}

const buttons = ["left", "middle", "right"] as const;

/** Pixels per unit of a wheel event: pixel, line, page (UI Events, WheelEvent.deltaMode). */
const wheelUnits = [1, 16, 400];

/** Highest click count. A third click selects a paragraph; the fourth click counts as the first again. */
const maxClicks = 3;

/** Sends mouse events: inside the picture, and outside while a button pressed inside is held. */
export function attachMouse({ canvas, picture, hasControl, push, onPress }: PointerParts): void {
  const held = new Map<number, number>();

  canvas.addEventListener("mousedown", (event) => {
    const { [event.button]: button } = buttons;
    if (!hasControl() || !button) return;
    event.preventDefault();
    onPress();
    const clicks = ((Math.max(1, event.detail) - 1) % maxClicks) + 1;
    held.set(event.button, clicks);
    push({ kind: "pointer_down", ...picture.pointAt(event), button, click_count: clicks });
  });
  addEventListener("mouseup", (event) => {
    const { [event.button]: button } = buttons;
    const clicks = held.get(event.button);
    if (!button || clicks === undefined) return;
    held.delete(event.button);
    if (hasControl()) push({ kind: "pointer_up", ...picture.pointAt(event), button, click_count: clicks });
  });
  addEventListener("mousemove", (event) => {
    if (!hasControl() || (event.target !== canvas && held.size === 0)) return;
    push({ kind: "pointer_move", ...picture.pointAt(event) });
  });
  canvas.addEventListener("contextmenu", (event) => void (hasControl() && event.preventDefault()));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!hasControl()) return;
      event.preventDefault();
      const unit = wheelUnits[event.deltaMode] ?? 1;
      push({ kind: "wheel", ...picture.pointAt(event), dx: event.deltaX * unit, dy: event.deltaY * unit });
    },
    { passive: false },
  );
}

/** Sends touches. The session's browser recognises taps, swipes and pinches. */
export function attachTouch({ canvas, picture, hasControl, push }: PointerParts): void {
  const fingers = new Map<number, SentFinger>();
  const send = (phase: "start" | "move" | "end" | "cancel") =>
    push({ kind: "touch", phase, points: [...fingers.values()] });

  function lowestFree(): number {
    const taken = new Set([...fingers.values()].map(({ id }) => id));
    let id = 0;
    while (taken.has(id)) id += 1;
    return id;
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" || !hasControl()) return;
    // Prevents the mouse events that the browser derives from touches.
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { id: lowestFree(), ...picture.pointAt(event) });
    send("start");
  });
  canvas.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    fingers.set(event.pointerId, { id: finger.id, ...picture.pointAt(event) });
    send("move");
  });
  canvas.addEventListener("pointerup", (event) => void (fingers.delete(event.pointerId) && send("end")));
  canvas.addEventListener("pointercancel", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.clear();
    send("cancel");
  });
}

/**
 * Returns a function that returns where the picture was last pressed, in the viewport. The function returns undefined
 * before the first press, and if a key was pressed since.
 */
export function trackPresses(canvas: HTMLElement, keys: HTMLElement): () => Pick<DOMRect, "x" | "y"> | undefined {
  let last: Pick<DOMRect, "x" | "y"> | undefined;
  canvas.addEventListener("pointerdown", ({ clientX: x, clientY: y }) => {
    last = { x, y };
  });
  keys.addEventListener("keydown", () => {
    last = undefined;
  });
  return () => last;
}

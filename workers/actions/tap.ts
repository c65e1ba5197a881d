import { MouseButton, type Tap } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { limits, type Scene } from "./scene.ts";
import { locateVisible } from "./selectors.ts";

/** Taps an element or a point: a touch on touch devices, unless it is more than one or with another button. */
export async function tap(scene: Scene, request: Tap): Promise<void> {
  const { page, progress } = scene;
  const { selector, frame, x = 0, y = 0, count = 1 } = request;
  const button = buttonOf(request.button);
  const isTouch = scene.hasTouch && count === 1 && button === "left";
  if (selector !== undefined) {
    const element = locateVisible(page, { selector, frame, path: "action" });
    if (isTouch) await element.tap(limits(scene));
    else await element.click({ ...limits(scene), button, clickCount: count });
  } else if (isTouch) await progress.race(page.touchscreen.tap(x, y));
  else await progress.race(page.mouse.click(x, y, { button, clickCount: count }));
}

function buttonOf(button: MouseButton): "left" | "right" | "middle" {
  if (button === MouseButton.RIGHT) return "right";
  return button === MouseButton.MIDDLE ? "middle" : "left";
}

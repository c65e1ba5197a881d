import type { Locator } from "playwright-core";
import { MouseButton, type Tap } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
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
    if (isTouch) await touchElement(scene, element);
    else await element.click({ ...limits(scene), button, clickCount: count });
  } else if (isTouch) await touch(scene, x, y);
  else await progress.race(page.mouse.click(x, y, { button, clickCount: count }));
}

/** Touches an element in the middle of its first box, once it is there, still, in view and uncovered. */
async function touchElement(scene: Scene, element: Locator): Promise<void> {
  await element.click({ ...limits(scene), trial: true });
  const box = await element.boundingBox(limits(scene));
  if (!box) throw fail("driver-error", {}, { detail: "the element has left the page" });
  const middle = await element.evaluate(findMiddle, undefined, limits(scene));
  await touch(scene, box.x + middle.x, box.y + middle.y);
}

async function touch({ progress, sessionPage }: Scene, x: number, y: number): Promise<void> {
  const cdp = await progress.race(sessionPage.cdp);
  await progress.race(cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] }));
  await progress.race(cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] }));
}

/** Runs in the page: where the middle of an element's first box is, a link being of several lines, from its top left. */
function findMiddle(element: Element): { x: number; y: number } {
  const whole = element.getBoundingClientRect();
  const first = [...element.getClientRects()].find(({ width, height }) => width * height > 1) ?? whole;
  return { x: first.x + first.width / 2 - whole.x, y: first.y + first.height / 2 - whole.y };
}

function buttonOf(button: MouseButton): "left" | "right" | "middle" {
  if (button === MouseButton.RIGHT) return "right";
  return button === MouseButton.MIDDLE ? "middle" : "left";
}

import { type Hover, MouseButton, type Tap } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import type { GuardedInput } from "../../injected/page-guard.ts";
import type { ViewportPoint } from "../../injected/page-visibility.ts";
import type { Button } from "../../input/mouse.ts";
import { inputOf, type PageInput } from "../../input/page-input.ts";
import type { TouchScreen } from "../../input/touch-screen.ts";
import { dispatchClick } from "../elements/click-dispatch.ts";
import { callPage, mainFrame } from "../elements/page-world.ts";
import { retryUntilTimeout } from "../elements/reach.ts";
import { checkTime, locatorOf, type Scene } from "./scene.ts";

/**
 * Taps an element or a point. With a touch screen, a single tap of the left button is a touch. All other taps are mouse
 * clicks. Returns the title from `dispatchClick`. Undefined for a point.
 */
export function tap(scene: Scene, request: Tap): Promise<string | undefined> {
  const { count = 1 } = request;
  const button = buttonOf(request.button);
  const isTouch = scene.hasTouch && count === 1 && button === "left";
  return hit(scene, request, "press", ({ mouse, touchScreen }, point) =>
    isTouch ? touch(touchScreen, point) : mouse.click(point, button, count),
  );
}

/** Moves the mouse to an element or a point. Returns the title from `dispatchClick`. Undefined for a point. */
export function hover(scene: Scene, request: Hover): Promise<string | undefined> {
  return hit(scene, request, "move", ({ mouse }, point) => mouse.move(point));
}

async function hit(
  scene: Scene,
  request: Tap | Hover,
  gesture: GuardedInput,
  act: (input: PageInput, point: ViewportPoint) => Promise<unknown>,
): Promise<string | undefined> {
  const { progress, sessionPage } = scene;
  const locator = locatorOf(scene, request, "action");
  const input = inputOf(sessionPage.cdp);
  const dispatch = (point: ViewportPoint) => progress.race(act(input, point));
  if (!locator) {
    const point = await pointOf(scene, request);
    checkTime(progress);
    await dispatch(point);
    return undefined;
  }
  return dispatchClick(scene, locator, { gesture, isEnabled: gesture === "press" }, dispatch);
}

async function touch(screen: TouchScreen, point: ViewportPoint): Promise<void> {
  await Promise.all([screen.start(point), screen.end()]);
}

/** Returns the point that a request names. Throws `validation-failed` if the point is outside of the viewport. */
async function pointOf(scene: Scene, { x = 0, y = 0 }: Pick<Tap | Hover, "x" | "y">): Promise<ViewportPoint> {
  const { width, height } = await retryUntilTimeout(scene, async () => {
    return { value: await callPage(scene, mainFrame(scene), "viewportSize") };
  });
  const outside = `is outside of the viewport of ${width}x${height}`;
  if (x >= width) throw failFields("validation-failed", { "action.x": outside });
  if (y >= height) throw failFields("validation-failed", { "action.y": outside });
  return { x, y };
}

function buttonOf(button: MouseButton): Button {
  if (button === MouseButton.RIGHT) return "right";
  return button === MouseButton.MIDDLE ? "middle" : "left";
}

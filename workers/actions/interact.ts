import type { InteractRequest, Place, Tap } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../src/platform/errors.ts";
import { crashedFailure, elementFailure, hasClosedByIt } from "./browser-failure.ts";
import { drag, swipe } from "./pointer.ts";
import { limits, type Scene } from "./scene.ts";
import { scroll } from "./scroll.ts";
import { type Aim, locateVisible } from "./selectors.ts";
import { tap } from "./tap.ts";
import { pressKey, typeText } from "./typing.ts";
import { upload } from "./upload.ts";

type Action = InteractRequest["action"];

/** Does the one thing that a request asks for. */
export async function interact(scene: Scene, action: Action): Promise<void> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  try {
    await act(scene, action);
  } catch (thrown) {
    const aims = aimsOf(action);
    if (hasClosedByIt(thrown, scene.page, aims)) return;
    throw await elementFailure(thrown, scene.page, aims);
  }
}

async function act(scene: Scene, action: Action): Promise<void> {
  switch (action.case) {
    case "tap":
      return tap(scene, action.value);
    case "type":
      return typeText(scene, action.value);
    case "key":
      return pressKey(scene, action.value);
    case "scroll":
      return scroll(scene, action.value);
    case "select": {
      const { selector, frame, values } = action.value;
      await locateVisible(scene.page, { selector, frame, path: "action" }).selectOption(values, limits(scene));
      return;
    }
    case "hover": {
      const { selector, frame } = action.value;
      return locateVisible(scene.page, { selector, frame, path: "action" }).hover(limits(scene));
    }
    case "drag":
      return drag(scene, action.value);
    case "swipe":
      return swipe(scene, action.value);
    case "upload":
      return upload(scene, action.value);
    case undefined:
      throw failFields("validation-failed", { action: "is required" });
    default:
      // Without it an action that is forgotten above would be answered as done.
      action satisfies never;
  }
}

/** Every element that an action names: a selector among them may be what is wrong with it. */
function aimsOf(action: Action): Aim[] {
  switch (action.case) {
    case "drag":
    case "swipe":
      return [...aimOf(action.value.from, "action.from"), ...aimOf(action.value.to, "action.to")];
    case "key":
    case undefined:
      return [];
    default:
      return aimOf(action.value, "action");
  }
}

function aimOf(
  place: Pick<Place | Tap, "selector" | "frame"> | { selector?: string; frame: string[] } | undefined,
  path: string,
): Aim[] {
  return place?.selector === undefined ? [] : [{ selector: place.selector, frame: place.frame, path }];
}

import type { InteractRequest } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import { isTargetClosed } from "../../cdp/target-faults.ts";
import { crashedFailure } from "../../pages/tab.ts";
import { browserFailure } from "./browser-failure.ts";
import { drag, swipe } from "./pointer.ts";
import type { Scene } from "./scene.ts";
import { scroll } from "./scroll.ts";
import { select } from "./select.ts";
import { hover, tap } from "./tap.ts";
import { pressKey, typeText } from "./typing.ts";
import { upload } from "./upload.ts";

type Action = InteractRequest["action"];

/** An action on the contents of a page, as opposed to the page itself. */
export type PageAction = Exclude<
  Action,
  { case: "back" | "forward" | "reload" | "activatePage" | "closePage" | "openPage" }
>;

/** Performs one action. Returns the title that the page reported after handling all its input, if it did. */
export async function interact(scene: Scene, action: PageAction): Promise<string | undefined> {
  if (scene.sessionPage.isCrashed) throw crashedFailure();
  try {
    return await act(scene, action);
  } catch (thrown) {
    // The input closed the page, as a button in a popup does: the action succeeded.
    if (!isTargetClosed(thrown)) throw browserFailure(thrown);
    return undefined;
  }
}

async function act(scene: Scene, action: PageAction): Promise<string | undefined> {
  switch (action.case) {
    case "tap":
      return tap(scene, action.value);
    case "hover":
      return hover(scene, action.value);
    case "type":
      await typeText(scene, action.value);
      break;
    case "key":
      await pressKey(scene, action.value);
      break;
    case "scroll":
      await scroll(scene, action.value);
      break;
    case "select":
      await select(scene, action.value);
      break;
    case "drag":
      await drag(scene, action.value);
      break;
    case "swipe":
      await swipe(scene, action.value);
      break;
    case "upload":
      await upload(scene, action.value);
      break;
    case undefined:
      throw failFields("validation-failed", { action: "is required" });
    default:
      // Makes the compiler reject a missing case, which would otherwise be answered as done.
      action satisfies never;
  }
  return undefined;
}

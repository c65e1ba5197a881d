import type { InteractRequest } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import { isTargetClosed } from "../../cdp/target-faults.ts";
import type { PageRegistry } from "../../pages/page-registry.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import { shownText } from "../../pages/shown-text.ts";
import { crashedFailure } from "../../pages/tab.ts";
import { ActionEffects } from "./action-effects.ts";
import { browserFailure } from "./browser-failure.ts";
import { check, uncheck } from "./check.ts";
import { activatePage, closePage, openPage, reload, traverseHistory } from "./page-control.ts";
import { drag, swipe } from "./pointer-actions.ts";
import type { Scene } from "./scene.ts";
import { scroll } from "./scroll.ts";
import { select } from "./select.ts";
import { hover, tap } from "./tap.ts";
import { fill, pressKey, typeText } from "./typing.ts";
import { upload } from "./upload.ts";

/** Context of an interact command. Actions on the page itself also use the registry. */
export interface ActionScene extends Scene {
  readonly pages: PageRegistry;
}

/** Fields of a command's response that an action sets. */
export interface ActionResult {
  readonly opened?: string[];
  readonly title?: string | undefined;
  /** Page that the response describes, if it differs from the command's page. */
  readonly page?: SessionPage;
}

export async function interact(scene: ActionScene, action: InteractRequest["action"]): Promise<ActionResult> {
  switch (action.case) {
    case "back":
    case "forward":
      await traverseHistory(scene, action.case === "back" ? -1 : 1);
      return {};
    case "reload":
      await reload(scene);
      return {};
    case "activatePage":
      await activatePage(scene, action.value);
      return { page: scene.pages.active };
    case "closePage":
      await closePage(scene, action.value);
      return { page: scene.pages.active };
    case "openPage":
      await openPage(scene);
      return { page: scene.pages.active };
    case "tap":
      return onContents(scene, () => tap(scene, action.value));
    case "hover":
      return onContents(scene, () => hover(scene, action.value));
    case "type":
      return onContents(scene, () => typeText(scene, action.value));
    case "fill":
      return onContents(scene, () => fill(scene, action.value));
    case "check":
      return onContents(scene, () => check(scene, action.value));
    case "uncheck":
      return onContents(scene, () => uncheck(scene, action.value));
    case "key":
      return onContents(scene, () => pressKey(scene, action.value));
    case "scroll":
      return onContents(scene, () => scroll(scene, action.value));
    case "select":
      return onContents(scene, () => select(scene, action.value));
    case "drag":
      return onContents(scene, () => drag(scene, action.value));
    case "swipe":
      return onContents(scene, () => swipe(scene, action.value));
    case "upload":
      return onContents(scene, () => upload(scene, action.value));
    case undefined:
      throw failFields("validation-failed", { action: "is required" });
    default:
      // Makes the compiler reject a missing case, which would otherwise be reported as success.
      return action satisfies never;
  }
}

/**
 * Performs an action on the contents of a page and waits for the effects of the action. `act` resolves with the title
 * that the page reported after handling all its input, if any.
 */
async function onContents(
  scene: ActionScene,
  act: () => Promise<string | undefined> | Promise<void>,
): Promise<ActionResult> {
  const { pages, sessionPage, progress } = scene;
  const effects = new ActionEffects(pages, sessionPage);
  if (sessionPage.isCrashed) throw crashedFailure();
  let reportedTitle: Awaited<ReturnType<typeof act>>;
  try {
    reportedTitle = await act();
  } catch (thrown) {
    // If the input closed the page, for example through a popup's close button, the action succeeded.
    if (!isTargetClosed(thrown)) throw browserFailure(thrown);
  }
  const { opened, title } = await effects.settle(
    progress,
    typeof reportedTitle === "string" ? reportedTitle : undefined,
  );
  return { opened: opened.map(({ id }) => id), title: title && shownText(title) };
}

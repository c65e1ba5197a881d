import type { InteractRequest, Observation, ObserveOptions } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { asFailure } from "../../src/platform/errors.ts";
import { Aftermath } from "../driver/actions/aftermath.ts";
import { interact } from "../driver/actions/interact.ts";
import { activatePage, closePage, goInHistory, openPage, reload } from "../driver/actions/page-control.ts";
import { type ObserveScene, observe, settle } from "../driver/observe/observe.ts";
import type { PageBook } from "../pages/page-book.ts";
import type { SessionPage } from "../pages/session-page.ts";
import { shownText } from "../pages/shown-text.ts";

/** Result of a command's work, added to its answer. */
export interface WorkResult {
  readonly httpStatus?: number;
  /** The download, if the navigation started one. */
  readonly download?: { readonly fileName: string };
  /** Ids of the pages that the command opened. */
  readonly opened?: string[];
  /** Page title, if already known. */
  readonly title?: string | undefined;
  /** Page of the answer, if different from the page of the command. */
  readonly page?: SessionPage;
  /** Number of actions done, and the reason why the next one was not. */
  readonly done?: number;
  readonly stopped?: { readonly slug: string; readonly detail: string };
  readonly observation?: Observation;
}

/** Context of actions, with all pages. */
interface ActionScene extends ObserveScene {
  readonly pages: PageBook;
}

/** Runs actions in sequence while the page stays the same. Then observes the page if requested. */
export async function actAndLook(scene: ActionScene, request: InteractRequest): Promise<WorkResult> {
  const { tab } = scene.sessionPage;
  const { started } = tab;
  let result = await act(scene, request.action);
  let done = 1;
  const stopBefore = (slug: string, detail: string) => ({ ...result, done, stopped: { slug, detail } });
  for (const { action } of request.next) {
    const { opened = [], page } = result;
    if (tab.isClosed || tab.isCrashed) result = stopBefore("conflict", "the page has closed");
    else if (opened.length > 0) result = stopBefore("conflict", "another page has opened");
    else if (page || tab.started > started) result = stopBefore("conflict", "the page shows another document");
    else {
      try {
        result = { ...result, ...(await act(scene, action)) };
        done += 1;
        continue;
      } catch (thrown) {
        if (scene.progress.signal.aborted) throw thrown;
        const { slug, detail = slug } = asFailure(thrown);
        result = stopBefore(slug, detail);
      }
    }
    break;
  }
  const looked = request.observe && (await lookAfter(scene, request.observe));
  return { ...result, done, ...(looked && { observation: looked }) };
}

/** Observes the active page once it has settled. Resolves with undefined if that fails, because the actions are done. */
export async function lookAfter(before: ActionScene, options: ObserveOptions): Promise<Observation | undefined> {
  const { progress, pages } = before;
  const scene = { ...before, sessionPage: pages.active };
  try {
    await settle(scene);
    return await observe(scene, options);
  } catch (thrown) {
    if (progress.signal.aborted) throw thrown;
    return undefined;
  }
}

/** Runs one action. Actions on page content resolve once their effects are known. */
async function act(scene: ActionScene, action: InteractRequest["action"]): Promise<WorkResult> {
  const { pages } = scene;
  switch (action.case) {
    case "back":
    case "forward":
      await goInHistory(scene, action.case === "back" ? -1 : 1);
      return {};
    case "reload":
      await reload(scene);
      return {};
    case "activatePage":
      await activatePage(scene, action.value);
      return { page: pages.active };
    case "closePage":
      await closePage(scene, action.value);
      return { page: pages.active };
    case "openPage":
      await openPage(scene);
      return { page: pages.active };
    default: {
      const aftermath = new Aftermath(pages, scene.sessionPage);
      const told = await interact(scene, action);
      const { opened, title } = await aftermath.settle(scene.progress, told);
      return { opened: opened.map(({ id }) => id), title: title && shownText(title) };
    }
  }
}

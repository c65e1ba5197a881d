import type { Viewport } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { ChooserDesk } from "../../files/chooser-desk.ts";
import type { SessionFiles } from "../../files/session-files.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { VariableUse } from "../../variables/variable-book.ts";
import type { Aim } from "../elements/aim.ts";
import type { RefBook } from "../elements/ref-book.ts";

/** What an action works on. */
export interface Scene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  /** The emulated device has a touch screen. */
  readonly hasTouch: boolean;
  /** The files of the session. */
  readonly files: Pick<SessionFiles, "pathOf">;
  readonly chooserDesk: Pick<ChooserDesk, "expect">;
  /** The size of its pages. */
  readonly viewport: Viewport;
  /** What references lead to. */
  readonly refs: Pick<RefBook, "aimOf">;
  /** What may be typed that nobody is to read. */
  readonly secrets: VariableUse;
}

/** How a request names an element: by a selector or a reference, or not at all. */
interface Naming {
  readonly selector?: string | undefined;
  readonly frame: readonly string[];
  readonly ref?: string | undefined;
}

/** The element that a request names, if it names one; `path` is that of its message. */
export function aimOf({ refs, sessionPage }: Scene, { selector, frame, ref }: Naming, path: string): Aim | undefined {
  if (ref !== undefined) return refs.aimOf(ref, sessionPage.id, path);
  return selector ? { selector, frame, path } : undefined;
}

/** The same, of a request that has to name one. */
export function neededAim(scene: Scene, naming: Naming, path: string): Aim {
  const aim = aimOf(scene, naming, path);
  if (!aim) throw failFields("validation-failed", { [`${path}.selector`]: "is required" });
  return aim;
}

/** Fails when the time is up: what was sent now would come after the command's answer. */
export function checkTime({ isOver }: Pick<Progress, "isOver">): void {
  if (isOver) throw fail("session-timeout", {}, { detail: "there was no time left for it" });
}

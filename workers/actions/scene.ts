import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { SessionFiles } from "../files/session-files.ts";
import type { DialogDesk } from "../pages/dialog-desk.ts";
import type { Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";

/** What an action works on. */
export interface Scene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  /** The emulated device has a touch screen. */
  readonly hasTouch: boolean;
  /** The files of the session. */
  readonly files: Pick<SessionFiles, "pathOf">;
  readonly dialogDesk: Pick<DialogDesk, "expectChooser">;
  /** The size of its pages. */
  readonly viewport: Viewport;
}

/** Fails when the time is up: what was sent now would come after the command's answer. */
export function checkTime({ isOver }: Pick<Progress, "isOver">): void {
  if (isOver) throw fail("session-timeout", {}, { detail: "there was no time left for it" });
}

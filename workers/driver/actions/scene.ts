import type { Viewport } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { FileChoosers } from "../../files/file-choosers.ts";
import type { SessionFiles } from "../../files/session-files.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { VariableUse } from "../../variables/variable-store.ts";
import type { Aim } from "../elements/aim.ts";
import type { RefRegistry } from "../elements/ref-registry.ts";

export interface Scene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  /** Whether the emulated device has a touch screen. */
  readonly hasTouch: boolean;
  readonly files: Pick<SessionFiles, "pathOf">;
  readonly fileChoosers: Pick<FileChoosers, "expect">;
  /** Viewport size of the session's pages. */
  readonly viewport: Viewport;
  readonly refs: Pick<RefRegistry, "aimOf">;
  /** Secrets that may be typed but never shown. */
  readonly secrets: VariableUse;
}

/** The fields by which a request names an element: a selector, a reference, or neither. */
interface Naming {
  readonly selector?: string | undefined;
  readonly frame: readonly string[];
  readonly ref?: string | undefined;
}

/** Returns the element that a request names, if any. `path` is the path of the naming message in the request. */
export function aimOf({ refs, sessionPage }: Scene, { selector, frame, ref }: Naming, path: string): Aim | undefined {
  if (ref !== undefined) return refs.aimOf(ref, sessionPage.id, path);
  return selector ? { selector, frame, path } : undefined;
}

/** Returns the element that a request names. Throws `validation-failed` if the request names no element. */
export function neededAim(scene: Scene, naming: Naming, path: string): Aim {
  const aim = aimOf(scene, naming, path);
  if (!aim) throw failFields("validation-failed", { [`${path}.selector`]: "is required" });
  return aim;
}

/** Throws if the command's time is up: input sent now would arrive after the command's answer. */
export function checkTime({ isOver }: Pick<Progress, "isOver">): void {
  if (isOver) throw fail("session-timeout", {}, { detail: "the timeout passed before the input was sent" });
}

import type { Viewport } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { fail, failFields } from "../../../src/platform/errors.ts";
import type { FileChoosers } from "../../files/file-choosers.ts";
import type { SessionFiles } from "../../files/session-files.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { VariableUse } from "../../variables/variable-store.ts";
import type { Locator } from "../elements/locator.ts";
import type { RefRegistry } from "../elements/ref-registry.ts";

/** Context of a command: its page, its deadline, and the parts of the session that the command uses. */
export interface Scene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  /** Whether the emulated device has a touch screen. */
  readonly hasTouch: boolean;
  readonly files: Pick<SessionFiles, "pathOf">;
  readonly fileChoosers: Pick<FileChoosers, "expect">;
  /** Viewport size of the session's pages. */
  readonly viewport: Viewport;
  readonly refs: Pick<RefRegistry, "locatorOf">;
  /** Secrets that may be typed, and the mask that removes them from output. */
  readonly secrets: VariableUse;
}

/** The fields by which a request names an element: a selector, a reference, or neither. */
interface LocatorFields {
  readonly selector?: string | undefined;
  readonly frame: readonly string[];
  readonly ref?: string | undefined;
}

/**
 * Returns the locator of the element that a request names, if any. `path` is the path of the request's field that
 * contains `selector` and `frame`.
 */
export function locatorOf(
  { refs, sessionPage }: Scene,
  { selector, frame, ref }: LocatorFields,
  path: string,
): Locator | undefined {
  if (ref !== undefined) return refs.locatorOf(ref, sessionPage.id, path);
  return selector ? { selector, frame, path } : undefined;
}

/** Returns the locator of the element that a request names. Throws `validation-failed` if it names no element. */
export function requiredLocator(scene: Scene, fields: LocatorFields, path: string): Locator {
  const locator = locatorOf(scene, fields, path);
  if (!locator) throw failFields("validation-failed", { [`${path}.selector`]: "is required" });
  return locator;
}

/** Throws if the timeout has passed: input sent now would arrive after the command's response. */
export function checkTime({ isOver }: Pick<Progress, "isOver">): void {
  if (isOver) throw fail("session-timeout", {}, { detail: "the timeout passed before the input was sent" });
}

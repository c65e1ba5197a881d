import type { Page } from "playwright-core";
import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";

/** What an action works on. */
export interface Scene {
  readonly sessionPage: SessionPage;
  readonly page: Page;
  readonly progress: Progress;
  /** The emulated device has a touch screen. */
  readonly hasTouch: boolean;
  /** The size of its pages. */
  readonly viewport: Viewport;
}

/** What Playwright's operations are given so that they end with the command. */
export function limits({ progress }: Pick<Scene, "progress">): { timeout: number; signal: AbortSignal } {
  return { timeout: progress.remaining(), signal: progress.signal };
}

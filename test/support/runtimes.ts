import { inject } from "vitest";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly runtimes: readonly BrowserRuntime[];
  }
}

/** The runtimes in which this run tests what is the same in all of them: vitest.config.ts says which, by tier. */
export const runtimes = inject("runtimes");

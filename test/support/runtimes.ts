import { inject } from "vitest";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly runtimes: readonly BrowserRuntime[];
  }
}

/** Runtimes in which this run tests behaviour common to all, set by tier in vitest.config.ts. */
export const runtimes = inject("runtimes");

import { ConfigError, type EnvironmentReader } from "./environment.ts";

/** What keeps pages in: a network namespace for each session's browser, or the browser's flags alone. */
export type Isolation = "namespace" | "flags";

/** How a worker confines its browsers. */
export interface IsolationConfig {
  readonly isolation: Isolation;
  /** Whether browsers have Chromium's own sandbox. */
  readonly browserSandbox: "on" | "off";
}

/** Reads `ISOLATION` and `BROWSER_SANDBOX`. macOS has no network namespaces, so that `flags` is the only value there. */
export function readIsolation(read: EnvironmentReader, platform = process.platform): IsolationConfig {
  const absent = platform === "linux" ? "namespace" : "flags";
  const isolation = read.oneOf("ISOLATION", ["namespace", "flags"], absent);
  if (isolation === "namespace" && platform !== "linux")
    throw new ConfigError("ISOLATION", "accepts `namespace` on Linux only: other systems have no network namespaces");
  return { isolation, browserSandbox: read.oneOf("BROWSER_SANDBOX", ["on", "off"], "on") };
}

/** Describes what a worker does without; undefined when it does without nothing. */
export function describeWeakness({ isolation, browserSandbox }: IsolationConfig): string | undefined {
  const weaknesses = [
    isolation === "flags" && "pages are kept in by the browser's flags alone (ISOLATION=flags)",
    browserSandbox === "off" && "browsers run without their sandbox (BROWSER_SANDBOX=off)",
  ].filter((weakness) => weakness !== false);
  return weaknesses.length > 0 ? weaknesses.join("; ") : undefined;
}

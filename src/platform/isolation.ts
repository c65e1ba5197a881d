import { ConfigError, type EnvironmentReader } from "./environment.ts";

/** Confinement of pages: a network namespace per session's browser, or only browser flags. */
export type Isolation = "namespace" | "flags";

/** Confinement of browsers by a worker. */
export interface IsolationConfig {
  readonly isolation: Isolation;
  /** Whether Chromium's own sandbox is on. */
  readonly browserSandbox: "on" | "off";
}

/** Reads `ISOLATION` and `BROWSER_SANDBOX`. Only Linux has network namespaces. */
export function readIsolation(read: EnvironmentReader, platform = process.platform): IsolationConfig {
  const absent = platform === "linux" ? "namespace" : "flags";
  const isolation = read.oneOf("ISOLATION", ["namespace", "flags"], absent);
  if (isolation === "namespace" && platform !== "linux")
    throw new ConfigError("ISOLATION", "accepts `namespace` on Linux only: other systems have no network namespaces");
  return { isolation, browserSandbox: read.oneOf("BROWSER_SANDBOX", ["on", "off"], "on") };
}

/** Describes disabled confinements, or returns undefined if there are none. */
export function describeWeakness({ isolation, browserSandbox }: IsolationConfig): string | undefined {
  const weaknesses = [
    isolation === "flags" && "pages are confined by browser flags only (ISOLATION=flags)",
    browserSandbox === "off" && "browsers run without Chromium's sandbox (BROWSER_SANDBOX=off)",
  ].filter((weakness) => weakness !== false);
  return weaknesses.length > 0 ? weaknesses.join("; ") : undefined;
}

import { homedir } from "node:os";
import { type BrowserRuntime, findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { dataDirectory } from "../../src/platform/data-directory.ts";
import { browserFlags } from "../../workers/isolation/browser-flags.ts";

/** Browsers run by root start only without a sandbox. In an isolation slot they have another uid and a sandbox. */
const isRoot = process.getuid?.() === 0;

/** Flags without which a browser does not start here. */
export const sandboxFlags: readonly string[] = isRoot ? ["--no-sandbox"] : [];

/** Returns the flags of the service's browsers, without the proxy: a bare browser has no relay. */
export function bareFlags(runtime: BrowserRuntime, directory: string | undefined): string[] {
  const flags = browserFlags({ runtime, sandbox: isRoot ? "none" : "namespaces", relayPort: 0, directory });
  return flags.filter((flag) => !flag.startsWith("--proxy-server="));
}

/** Returns the executable of a runtime that the service would use. */
export function browserPath(runtime: BrowserRuntime): string {
  const { env, platform } = process;
  const home = dataDirectory({ env, uid: process.getuid?.() ?? -1, home: homedir() });
  const path = findBrowsers({ env, platform, dataDirectory: home, disk: realDisk })[runtime];
  if (path === undefined) throw new Error(`no browser for the runtime ${runtime} is installed`);
  return path;
}

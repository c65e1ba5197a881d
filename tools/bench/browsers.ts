import { homedir } from "node:os";
import { type BrowserRuntime, findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { dataDirectory } from "../../src/platform/data-directory.ts";
import { browserFlags } from "../../workers/isolation/browser-flags.ts";

/** A browser does not start as root with a sandbox; in a slot it has another uid, and one. */
const isRoot = process.getuid?.() === 0;

/** Flags without which a browser does not start here. */
export const sandboxFlags: readonly string[] = isRoot ? ["--no-sandbox"] : [];

/** The flags of the service's own browsers, but for the way out: a bare browser has no relay. */
export function bareFlags(runtime: BrowserRuntime, directory: string | undefined): string[] {
  const flags = browserFlags({ runtime, sandbox: isRoot ? "none" : "namespaces", relayPort: 0, directory });
  return flags.filter((flag) => !flag.startsWith("--proxy-server="));
}

/** Gives the real binary of a runtime, the same that the service finds. */
export function browserPath(runtime: BrowserRuntime): string {
  const { env, platform } = process;
  const home = dataDirectory({ env, uid: process.getuid?.() ?? -1, home: homedir() });
  const path = findBrowsers({ env, platform, dataDirectory: home, disk: realDisk })[runtime];
  if (path === undefined) throw new Error(`no browser for the runtime ${runtime} is installed`);
  return path;
}

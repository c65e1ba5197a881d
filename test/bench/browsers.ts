import { homedir } from "node:os";
import { type BrowserRuntime, findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { dataDirectory } from "../../src/platform/data-directory.ts";

/** Flags without which a browser does not start here: as root it has no sandbox, unless a slot gives it a uid. */
export const sandboxFlags: readonly string[] = process.getuid?.() === 0 ? ["--no-sandbox"] : [];

/** Gives the real binary of a runtime, the same that the service finds. */
export function browserPath(runtime: BrowserRuntime): string {
  const { env, platform } = process;
  const home = dataDirectory({ env, uid: process.getuid?.() ?? -1, home: homedir() });
  const path = findBrowsers({ env, platform, dataDirectory: home, disk: realDisk })[runtime];
  if (path === undefined) throw new Error(`no browser for the runtime ${runtime} is installed`);
  return path;
}

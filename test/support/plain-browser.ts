import { tmpdir } from "node:os";
import { type Browser, chromium } from "playwright-core";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";

/** Launches a browser as people have one, to open pages of ours in. */
export async function launchPlainBrowser(...flags: readonly string[]): Promise<Browser> {
  const paths = findBrowsers({ env: process.env, dataDirectory: tmpdir(), platform: process.platform, disk: realDisk });
  const executablePath = paths["headless-shell"];
  if (!executablePath) throw new Error("there is no headless shell to open pages in");
  // Chromium does not run as root with its sandbox; the pages are our own.
  return chromium.launch({ executablePath, args: [...flags, ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])] });
}

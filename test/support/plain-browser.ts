import { tmpdir } from "node:os";
import { type Browser, chromium } from "playwright";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";

/** Launches an ordinary browser for our own pages. */
export async function launchPlainBrowser(...flags: readonly string[]): Promise<Browser> {
  const paths = findBrowsers({ env: process.env, dataDirectory: tmpdir(), platform: process.platform, disk: realDisk });
  const executablePath = paths["headless-shell"];
  if (!executablePath) throw new Error("there is no headless shell to open pages in");
  // Chromium's sandbox does not work as root. The pages are trusted.
  return chromium.launch({ executablePath, args: [...flags, ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])] });
}

// Runs before packages are installed, on any installed Node. Reports within 5 s that an ordinary user has no browser
// and cannot download one. If in doubt, prints nothing and leaves the decision to find-browser.ts.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { downloadAnswers, noBrowser } from "./browser-source.mjs";

const { env } = process;
const home = env.DATA_DIR || join(env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "pilothouse");
const directory = env.PLAYWRIGHT_BROWSERS_PATH || join(home, "browsers");

/** @returns {string[]} */
function systemBrowsers() {
  const places = new URL("../src/platform/browsers/system-browsers.json", import.meta.url);
  return Object.values(JSON.parse(readFileSync(places, "utf8"))).flat();
}

// The fetch of an older Node ignores proxies, though Playwright's download does not.
const isConfigured = [env.CHROMIUM_PATH, env.HEADLESS_SHELL_PATH, env.HTTPS_PROXY, env.https_proxy].some(Boolean);
const mayHaveBrowser =
  process.getuid?.() === 0 || isConfigured || [directory, ...systemBrowsers()].some((path) => existsSync(path));
if (!mayHaveBrowser && !(await downloadAnswers())) {
  console.error(`pilothouse: ${noBrowser(directory, false)}`);
  process.exitCode = 1;
}

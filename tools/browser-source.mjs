// Places to get browsers from. Plain JavaScript, because the first check on a fresh machine runs on any installed Node.
import { readFileSync } from "node:fs";

const { env } = process;
const downloadHost =
  env.PLAYWRIGHT_CHROMIUM_DOWNLOAD_HOST || env.PLAYWRIGHT_DOWNLOAD_HOST || "https://cdn.playwright.dev";

/** Returns whether the host of Playwright's downloads responds within 3 s, so that an error appears within 5 s. */
export async function downloadAnswers() {
  try {
    await fetch(downloadHost, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(3_000) });
    return true;
  } catch {
    return false;
  }
}

/** Returns the `ID` of /etc/os-release, or "" if the file is missing. */
export function operatingSystem() {
  try {
    return /^ID="?([^"\n]*)"?$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

/**
 * Returns the command that installs a browser.
 * @param {string} directory of Playwright's browsers
 */
export function installCommand(directory) {
  if (operatingSystem() === "debian") return "sudo apt-get install -y chromium chromium-headless-shell";
  return `PLAYWRIGHT_BROWSERS_PATH=${directory} npx playwright install --with-deps chromium`;
}

/**
 * Returns the error message for a machine without a browser.
 * @param {string} directory of Playwright's browsers
 * @param {boolean} wasTried whether root has tried to install a browser
 */
export function noBrowser(directory, wasTried) {
  if (wasTried)
    return "no browser was found, and none could be installed for the reason above: solve it and start again, or name one in CHROMIUM_PATH or HEADLESS_SHELL_PATH.";
  const others = "or name another in CHROMIUM_PATH or HEADLESS_SHELL_PATH, and start again.";
  return `no browser was found and none could be installed: run \`${installCommand(directory)}\`, ${others}`;
}

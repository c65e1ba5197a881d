// Where a browser can be had. Plain JavaScript, because the first look at a fresh machine runs on whatever Node it has.
import { readFileSync } from "node:fs";

const { env } = process;
const downloadHost =
  env.PLAYWRIGHT_CHROMIUM_DOWNLOAD_HOST || env.PLAYWRIGHT_DOWNLOAD_HOST || "https://cdn.playwright.dev";

/** Whether anything answers at the host of Playwright's downloads: 3 s leave time for a sentence within 5. */
export async function downloadAnswers() {
  try {
    await fetch(downloadHost, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(3_000) });
    return true;
  } catch {
    return false;
  }
}

/** The name of the operating system as /etc/os-release has it; empty where there is no such file. */
export function operatingSystem() {
  try {
    return /^ID="?([^"\n]*)"?$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

/**
 * What somebody runs who may install a browser.
 * @param {string} directory of Playwright's browsers
 */
export function installCommand(directory) {
  if (operatingSystem() === "debian") return "sudo apt-get install -y chromium chromium-headless-shell";
  return `PLAYWRIGHT_BROWSERS_PATH=${directory} npx playwright-core install --with-deps chromium`;
}

/**
 * The one sentence for a machine without a browser.
 * @param {string} directory of Playwright's browsers
 * @param {boolean} wasTried whether root has tried to install one
 */
export function noBrowser(directory, wasTried) {
  if (wasTried)
    return "no browser was found, and none could be installed for the reason above: solve it and start again, or name one in CHROMIUM_PATH or HEADLESS_SHELL_PATH.";
  const others = "or name another in CHROMIUM_PATH or HEADLESS_SHELL_PATH, and start again.";
  return `no browser was found and none could be installed: run \`${installCommand(directory)}\`, ${others}`;
}

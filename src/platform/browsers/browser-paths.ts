import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import systemBrowsers from "./system-browsers.json" with { type: "json" };

/** The two kinds of Chromium that sessions run on. */
export type BrowserRuntime = "chromium" | "headless-shell";

/** The executable of each runtime that was found. */
export type BrowserPaths = Partial<Record<BrowserRuntime, string>>;

/** What finding browsers needs to know of the disk. */
export interface DiskLookup {
  /** Whether the path is a file that may be executed. */
  isExecutable(path: string): boolean;
  /** The names in a directory; none when there is no such directory. */
  list(directory: string): string[];
}

/** Where to look for browsers. */
export interface BrowserSearch {
  env: Record<string, string | undefined>;
  /** The service's data directory, below which Playwright's own browsers are kept. */
  dataDirectory: string;
  platform: NodeJS.Platform;
  disk: DiskLookup;
}

interface RuntimePlaces {
  variable: string;
  /** Name of Playwright's directories, before the dash and revision. */
  playwrightName: string;
  /** Executables below such a directory, per platform. */
  playwrightFiles: string[];
  /** Real binaries, never wrapper scripts: those of Debian do not exec, so killing one leaves the browser behind. */
  system: string[];
}

const macTestingApp = "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing";

const placesByRuntime: Record<BrowserRuntime, RuntimePlaces> = {
  chromium: {
    variable: "CHROMIUM_PATH",
    playwrightName: "chromium",
    playwrightFiles: [
      "chrome-linux64/chrome",
      "chrome-linux-arm64/chrome",
      `chrome-mac-arm64/${macTestingApp}`,
      `chrome-mac-x64/${macTestingApp}`,
    ],
    system: systemBrowsers.chromium,
  },
  "headless-shell": {
    variable: "HEADLESS_SHELL_PATH",
    playwrightName: "chromium_headless_shell",
    playwrightFiles: [
      "chrome-headless-shell-linux64/chrome-headless-shell",
      "chrome-headless-shell-linux-arm64/chrome-headless-shell",
      "chrome-headless-shell-mac-arm64/chrome-headless-shell",
      "chrome-headless-shell-mac-x64/chrome-headless-shell",
    ],
    system: systemBrowsers["headless-shell"],
  },
};

/** Wrapper scripts that people name in the environment, and the binary behind each. */
const behindWrapper: Record<string, string> = {
  "/usr/bin/chromium": "/usr/lib/chromium/chromium",
  "/usr/bin/chromium-headless-shell": "/usr/lib/chromium/chromium-headless-shell",
  "/usr/bin/google-chrome": "/opt/google/chrome/chrome",
  "/usr/bin/google-chrome-stable": "/opt/google/chrome/chrome",
};

/** The runtimes in the order in which they are looked for and named. */
export const browserRuntimes: readonly BrowserRuntime[] = ["chromium", "headless-shell"];

/** The disk as it is. */
export const realDisk: DiskLookup = {
  isExecutable(path) {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  },
  list(directory) {
    try {
      return readdirSync(directory);
    } catch {
      return [];
    }
  },
};

/** The directory of Playwright's own browsers: below the data directory, since a slot's uid cannot read a private home. */
export function playwrightDirectory({ env, dataDirectory }: Pick<BrowserSearch, "env" | "dataDirectory">): string {
  return env.PLAYWRIGHT_BROWSERS_PATH || join(dataDirectory, "browsers");
}

/**
 * Finds the executable of each runtime: the one named in the environment, else Playwright's, else the system's.
 * Throws when the environment names a file that cannot be run.
 */
export function findBrowsers(search: BrowserSearch): BrowserPaths {
  const found: BrowserPaths = {};
  for (const runtime of browserRuntimes) {
    const places = placesByRuntime[runtime];
    const path = namedPath(places, search) ?? playwrightPath(places, search) ?? systemPath(places, search);
    if (path !== undefined) found[runtime] = path;
  }
  return found;
}

function namedPath({ variable }: RuntimePlaces, { env, disk }: BrowserSearch): string | undefined {
  const named = env[variable];
  if (!named) return undefined;
  const path = behindWrapper[named] ?? named;
  if (!disk.isExecutable(path)) throw new Error(`${variable} names ${path}, which is not an executable file.`);
  return path;
}

function playwrightPath(places: RuntimePlaces, search: BrowserSearch): string | undefined {
  const directory = playwrightDirectory(search);
  for (const revision of installedRevisions(places.playwrightName, directory, search.disk)) {
    const home = join(directory, `${places.playwrightName}-${revision}`);
    const path = places.playwrightFiles.map((file) => join(home, file)).find((file) => search.disk.isExecutable(file));
    if (path !== undefined) return path;
  }
  return undefined;
}

/** Lists the revisions whose installation came to its end (Playwright's marker file says so), newest first. */
function installedRevisions(name: string, directory: string, disk: DiskLookup): number[] {
  return disk
    .list(directory)
    .filter((entry) => entry.startsWith(`${name}-`))
    .filter((entry) => disk.list(join(directory, entry)).includes("INSTALLATION_COMPLETE"))
    .map((entry) => Number(entry.slice(name.length + 1)))
    .filter(Number.isInteger)
    .sort((a, b) => b - a);
}

function systemPath(places: RuntimePlaces, { platform, disk }: BrowserSearch): string | undefined {
  return places.system
    .filter((path) => path.startsWith("/Applications/") === (platform === "darwin"))
    .find((path) => disk.isExecutable(path));
}

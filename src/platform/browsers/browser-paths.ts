import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import systemBrowsers from "./system-browsers.json" with { type: "json" };

/** Chromium variants that sessions run on. */
export type BrowserRuntime = "chromium" | "headless-shell";

/** Executables of the installed runtimes. */
export type BrowserPaths = Partial<Record<BrowserRuntime, string>>;

/** File system access for the search. */
export interface DiskLookup {
  /** Returns whether the path is an executable file. */
  isExecutable(path: string): boolean;
  /** Lists a directory. Returns an empty list if the directory cannot be read. */
  list(directory: string): string[];
}

export interface BrowserSearch {
  env: Record<string, string | undefined>;
  /** Data directory, which contains the browsers installed by Playwright. */
  dataDirectory: string;
  platform: NodeJS.Platform;
  disk: DiskLookup;
}

interface RuntimePlaces {
  variable: string;
  /** Name of Playwright's directories, without revision. */
  playwrightName: string;
  /** Possible paths of the executable in Playwright's directories, which differ between platforms. */
  playwrightFiles: string[];
  /** Binaries of the system. Excludes Debian's wrapper scripts: killing a script leaves its browser running. */
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

/** Known wrapper scripts and their binaries. */
const wrappedBinaries: Record<string, string> = {
  "/usr/bin/chromium": "/usr/lib/chromium/chromium",
  "/usr/bin/chromium-headless-shell": "/usr/lib/chromium/chromium-headless-shell",
  "/usr/bin/google-chrome": "/opt/google/chrome/chrome",
  "/usr/bin/google-chrome-stable": "/opt/google/chrome/chrome",
};

/** Runtimes in search order. */
export const browserRuntimes: readonly BrowserRuntime[] = ["chromium", "headless-shell"];

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

/**
 * Returns the directory of Playwright's browsers. Default: in DATA_DIR, because isolation slots cannot read home
 * directories.
 */
export function playwrightDirectory({ env, dataDirectory }: Pick<BrowserSearch, "env" | "dataDirectory">): string {
  return env.PLAYWRIGHT_BROWSERS_PATH || join(dataDirectory, "browsers");
}

/**
 * Finds the executable of each runtime: from the environment, else from Playwright, else from the system. Throws if the
 * environment names a file that is not executable.
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
  const path = wrappedBinaries[named] ?? named;
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

/** Lists the completely installed revisions (with Playwright's marker file), newest first. */
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

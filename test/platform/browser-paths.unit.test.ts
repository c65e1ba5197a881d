import { describe, expect, test } from "vitest";
import { type BrowserPaths, type DiskLookup, findBrowsers } from "../../src/platform/browsers/browser-paths.ts";

/** File system with only these executables. A directory lists its direct entries. */
function diskOf(...files: string[]): DiskLookup {
  return {
    isExecutable: (path) => files.includes(path),
    list: (directory) => {
      const below = files.filter((file) => file.startsWith(`${directory}/`));
      return [...new Set(below.map((file) => file.slice(directory.length + 1).split("/")[0] ?? ""))];
    },
  };
}

const debian = ["/usr/lib/chromium/chromium", "/usr/lib/chromium/chromium-headless-shell"];
const downloaded = (revision: number, ...rest: string[]) => [
  `/data/browsers/chromium_headless_shell-${revision}/chrome-headless-shell-linux64/chrome-headless-shell`,
  ...rest.map((file) => `/data/browsers/chromium_headless_shell-${revision}/${file}`),
];

interface Case {
  name: string;
  env?: Record<string, string>;
  files: string[];
  platform?: NodeJS.Platform;
  found: BrowserPaths;
}

const cases: Case[] = [
  { name: "nothing on a bare machine", files: [], found: {} },
  {
    name: "Debian's real binaries",
    files: [...debian, "/usr/bin/chromium", "/usr/bin/chromium-headless-shell"],
    found: { chromium: debian[0] ?? "", "headless-shell": debian[1] ?? "" },
  },
  { name: "no snap stub of Ubuntu", files: ["/usr/bin/chromium-browser", "/snap/bin/chromium"], found: {} },
  {
    name: "the path from the environment first",
    env: { CHROMIUM_PATH: "/opt/mine" },
    files: ["/opt/mine", ...debian],
    found: { chromium: "/opt/mine", "headless-shell": debian[1] ?? "" },
  },
  {
    name: "the binary behind a wrapper set in the environment",
    env: { HEADLESS_SHELL_PATH: "/usr/bin/chromium-headless-shell" },
    files: ["/usr/bin/chromium-headless-shell", debian[1] ?? ""],
    found: { "headless-shell": debian[1] ?? "" },
  },
  {
    name: "Playwright's newest complete download before system browsers",
    files: [
      ...downloaded(999, "INSTALLATION_COMPLETE"),
      ...downloaded(1255, "INSTALLATION_COMPLETE"),
      ...downloaded(1300),
      ...debian,
    ],
    found: { chromium: debian[0] ?? "", "headless-shell": downloaded(1255)[0] ?? "" },
  },
  {
    name: "Chrome on macOS, and no Linux paths",
    platform: "darwin",
    files: ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", ...debian],
    found: { chromium: "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" },
  },
];

describe("browser lookup finds", () => {
  test.each(cases)("$name", ({ env = {}, files, platform = "linux", found }) => {
    expect(findBrowsers({ env, dataDirectory: "/data", platform, disk: diskOf(...files) })).toEqual(found);
  });
});

test("a missing file named by the environment causes an error with the variable's name", () => {
  const search = { env: { CHROMIUM_PATH: "/gone" }, dataDirectory: "/data", disk: diskOf(...debian) };
  expect(() => findBrowsers({ ...search, platform: "linux" })).toThrow(
    "CHROMIUM_PATH names /gone, which is not an executable file.",
  );
});

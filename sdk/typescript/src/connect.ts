/** Browser of Playwright. `any` if Playwright is not installed. */
// biome-ignore lint/suspicious/noTsIgnore: the import is an error where the optional peer dependency is missing.
/** @ts-ignore */
export type PlaywrightBrowser = import("playwright").Browser;

/** Browser of Puppeteer. `any` if Puppeteer is not installed. */
// biome-ignore lint/suspicious/noTsIgnore: as above.
/** @ts-ignore */
export type PuppeteerBrowser = import("puppeteer-core").Browser;

/** Libraries that can drive a session. */
export type Library = "playwright" | "puppeteer";

/** Browser of a library. */
export type Connected<Name extends Library> = Name extends "playwright" ? PlaywrightBrowser : PuppeteerBrowser;

/** Exports of the libraries that are used. */
interface Modules {
  readonly playwright: { readonly chromium: { connectOverCDP(url: string): Promise<unknown> } };
  readonly puppeteer: { connect(options: object): Promise<unknown> };
}

/** Packages that have a library, in the order of preference. */
const packages = { playwright: ["playwright", "playwright-core"], puppeteer: ["puppeteer-core", "puppeteer"] } as const;

/** Connects an installed library to a session. */
export async function connectLibrary<Name extends Library>(library: Name, url: string): Promise<Connected<Name>> {
  const browser =
    library === "playwright"
      ? await (await load("playwright")).chromium.connectOverCDP(url)
      : await (await load("puppeteer")).connect({ browserWSEndpoint: url, defaultViewport: null });
  // The library returns its own browser.
  return browser as Connected<Name>;
}

async function load<Name extends Library>(library: Name): Promise<Modules[Name]> {
  for (const name of packages[library]) {
    try {
      return await import(name);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")) throw error;
    }
  }
  throw new TypeError(`expected one of ${packages[library].join(", ")}, got none: install one in the same project`);
}

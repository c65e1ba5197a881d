import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Prices } from "../../src/platform/tier-prices.ts";

/** An asset of the console in its encodings. All assets together take about 1 MB of memory. */
export interface ConsoleAsset {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzip: Buffer;
  readonly brotli: Buffer;
}

/** The built console. */
export interface ConsoleFiles {
  /** Returns the HTML page, which is the same for all paths, with the nonce of one response. */
  pageWith(nonce: string): string;
  /** Paths of pages. A parameter is written as in `/sessions/$id`. */
  readonly paths: readonly string[];
  readonly assets: ReadonlyMap<string, ConsoleAsset>;
}

const built = new URL("../../dist/console/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Values of the service that the pages of the console show. */
export interface ConsoleFacts {
  /** URL of the demo page, if there is one. */
  readonly demoUrl: string | undefined;
  readonly prices: Prices;
}

/** Reads the built console. Returns undefined if the console was not built. */
export function readConsole({ demoUrl = "", prices }: ConsoleFacts): ConsoleFiles | undefined {
  if (!existsSync(new URL("index.html", built))) return undefined;
  const page = readFileSync(new URL("index.html", built), "utf8")
    .replace("URL_OF_DEMO", demoUrl)
    .replace("PRICES_OF_PLANS", JSON.stringify(prices).replaceAll('"', "&quot;"));
  const parts = page.split("NONCE_OF_RESPONSE");
  const paths: string[] = JSON.parse(readFileSync(new URL("paths.json", built), "utf8"));
  const names = readdirSync(new URL("assets/", built)).filter((name) => !/\.(br|gz)$/.test(name));
  return {
    pageWith: (nonce) => parts.join(nonce),
    paths,
    assets: new Map(names.map((name) => [name, readAsset(name)])),
  };
}

function readAsset(name: string): ConsoleAsset {
  const read = (suffix: string): Buffer => readFileSync(new URL(`assets/${name}${suffix}`, built));
  const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
  return { type, plain: read(""), gzip: read(".gz"), brotli: read(".br") };
}

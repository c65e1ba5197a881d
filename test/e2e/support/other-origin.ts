import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright";
import { build } from "vite";
import { launchPlainBrowser } from "../../support/plain-browser.ts";

/** Two origins other than the service's, with pages in Chromium. */
export interface OtherOrigin extends AsyncDisposable {
  /** Opens the client page at the origin in CORS_ORIGINS or at an unlisted one. */
  open(origin: "permitted" | "foreign"): Promise<Page>;
}

async function bundle(directory: string): Promise<string> {
  await build({
    configFile: false,
    logLevel: "error",
    root: directory,
    build: {
      outDir: directory,
      emptyOutDir: false,
      minify: false,
      lib: {
        entry: fileURLToPath(new URL("./page-client.ts", import.meta.url)),
        formats: ["es"],
        fileName: () => "client.js",
      },
    },
  });
  return readFile(join(directory, "client.js"), "utf8");
}

/** Bundles the page's client, serves it on a port whose `localhost` origin is permitted, and starts a browser. */
export async function startOtherOrigin(port: number): Promise<OtherOrigin> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-page-"));
  const script = await bundle(directory);
  const server = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(
      isScript ? script : `<!doctype html><title>Client</title><script type="module" src="client.js"></script>`,
    );
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  const browser = await launchPlainBrowser();
  const origins = { permitted: `http://localhost:${port}`, foreign: `http://127.0.0.1:${port}` };
  return {
    async open(origin) {
      const page = await browser.newPage();
      await page.goto(origins[origin]);
      await page.waitForFunction("globalThis.pilothouse !== undefined");
      return page;
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      server.close();
      server.closeAllConnections();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

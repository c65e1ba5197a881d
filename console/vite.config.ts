import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import tailwind from "@tailwindcss/vite";
import { defineConfig, type Plugin } from "vite";
import { pagePaths } from "./app/page-paths.ts";

const encodings = [
  [".br", promisify(brotliCompress)],
  [".gz", promisify(gzip)],
] as const;

/** Writes the paths of the pages, which the gateway serves, and compresses the assets. */
function prepareForGateway(): Plugin {
  return {
    name: "prepare-for-gateway",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "paths.json", source: JSON.stringify(Object.values(pagePaths)) });
    },
    async writeBundle({ dir = "" }, bundle) {
      const assets = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
      await Promise.all(
        assets.flatMap((name) =>
          encodings.map(async ([suffix, compress]) => {
            const path = join(dir, name);
            await writeFile(`${path}${suffix}`, await compress(await readFile(path)));
          }),
        ),
      );
    },
  };
}

export default defineConfig({
  base: "/console/",
  plugins: [tailwind(), prepareForGateway()],
  // Replaced in each response by the gateway.
  html: { cspNonce: "NONCE_OF_RESPONSE" },
  build: {
    // The directory is new, and outside of the root.
    emptyOutDir: false,
    target: "es2024",
    // Inlined files would be data: URLs, which the content security policy forbids for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      onLog(level, log, handle) {
        // Libraries mark client modules for server rendering. The mark has no effect in a bundle for browsers.
        // The time of plugins depends on the load of the machine.
        if (log.code !== "MODULE_LEVEL_DIRECTIVE" && log.code !== "PLUGIN_TIMINGS") handle(level, log);
      },
    },
  },
  logLevel: "warn",
});

import { defineConfig } from "vite";

/** Name of the bundle: `live`, or `livekit`, which `live` loads. Each bundle is one file. */
const { PAGE = "live" } = process.env;

export default defineConfig({
  build: {
    lib: {
      entry: new URL(`${PAGE}/main.ts`, import.meta.url).pathname,
      formats: ["iife"],
      name: PAGE,
      fileName: () => `${PAGE}.js`,
    },
    emptyOutDir: false,
    target: "es2024",
    reportCompressedSize: false,
  },
  logLevel: "warn",
});

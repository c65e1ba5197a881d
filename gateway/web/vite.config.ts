import { defineConfig } from "vite";

/** The script of each page (`live`, or what it loads, named by PAGE): in one piece, and with nothing of it in the page's scope. */
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

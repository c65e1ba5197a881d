import { defineConfig } from "vite";

/** The script of the live page, which stands in the page itself: in one piece, and with nothing of it in the page's scope. */
export default defineConfig({
  build: {
    lib: {
      entry: new URL("live/main.ts", import.meta.url).pathname,
      formats: ["iife"],
      name: "live",
      fileName: () => "live.js",
    },
    target: "es2024",
    reportCompressedSize: false,
  },
  logLevel: "warn",
});

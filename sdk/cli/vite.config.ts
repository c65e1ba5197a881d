import { defineConfig } from "vite";

/** Bundles the program with the SDK, so that the package has no dependencies. */
export default defineConfig({
  logLevel: "warn",
  build: {
    ssr: "src/main.ts",
    target: "node22",
    rolldownOptions: { output: { entryFileNames: "pilothouse.js" } },
  },
  ssr: { noExternal: true },
});

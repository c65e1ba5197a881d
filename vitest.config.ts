import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Minutes each: `npm run test-long`.
    exclude: process.env.LONG_TESTS ? [] : ["test/**/*.long.test.ts"],
    environment: "node",
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/each-file.ts",
    // Tests drive real browsers and a real database: two files at a time are what two cores carry.
    maxWorkers: 2,
    // Of the tests of a file that may run at once.
    maxConcurrency: 2,
    sequence: { sequencer: SlowestFirst },
    // What takes 10 s by itself takes 30 behind other suites.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // What a test polls for is done by other processes: behind the tests of another file the usual second is too short.
    expect: { poll: { timeout: 20_000 } },
    retry: 0,
    allowOnly: false,
    passWithNoTests: false,
  },
});

import { globSync, readFileSync } from "node:fs";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";

/** Tiers in file names, such as `x.unit.test.ts`. A file `x.test.ts` is in the tier `service`. */
const named = ["unit", "browser", "system", "long"] as const;

type Tier = TestProjectInlineConfiguration["test"];

/** Options of all tiers. */
const common: Tier = {
  environment: "node",
  setupFiles: "test/support/each-file.ts",
  // Two cores: more files run while others wait for a browser or the database.
  maxWorkers: 4,
  // Concurrent tests of a file.
  maxConcurrency: 2,
  // A test that takes 10 s alone takes 30 s next to other suites.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // Tests poll for work of other processes. Next to the tests of another file, the default of 1 s is too short.
  expect: { poll: { timeout: 20_000 } },
  retry: 0,
  allowOnly: false,
};

/** Files of these tiers share a process and its modules, so they must not leave changes behind. */
const shared: Tier = { isolate: false };

const cluster = "test/support/cluster-template.ts";

/** Files that replace modules or keep time limits in modules. */
const alone = filesWith("\n// Needs its own process");

const browser: Tier = { ...shared, globalSetup: ["test/support/warm-services.ts", cluster] };

const tiers: readonly Tier[] = [
  { name: "unit", ...shared },
  {
    name: "service",
    globalSetup: "test/support/shared-postgres.ts",
    exclude: named.map((tier) => `test/**/*.${tier}.test.ts`),
    ...shared,
  },
  { ...shared, name: "system", globalSetup: cluster, exclude: alone },
  { name: "alone", include: alone },
  // Runs last, because the services that its files share run to the end.
  { ...browser, name: "browser", provide: { runtimes: ["headless-shell"] } },
  // Takes minutes per file: `npm run test-long`.
  { name: "long", globalSetup: cluster },
  // Runs the files of the tier `browser` that support both runtimes in full Chromium; part of `npm run test-long`.
  {
    ...browser,
    name: "chromium",
    include: filesWith("/support/runtimes.ts").filter((file) => file.endsWith(".browser.test.ts")),
    provide: { runtimes: ["chromium"] },
  },
  // Runs all tests of the files of which `npm test` runs a part; part of `npm run test-long`.
  {
    name: "whole",
    globalSetup: ["test/support/warm-services.ts", "test/support/shared-postgres.ts", cluster],
    include: filesWith("/support/long-test.ts"),
    provide: { runtimes: ["headless-shell"], runsLongTests: true },
  },
];

function filesWith(text: string): string[] {
  return globSync("test/**/*.test.ts").filter((file) => readFileSync(file, "utf8").includes(text));
}

export default defineConfig({
  test: {
    projects: tiers.map((tier) => {
      const suffix = tier?.name === "service" ? "" : `.${tier?.name}`;
      return { test: { ...common, include: [`test/**/*${suffix}.test.ts`], ...tier } };
    }),
    sequence: { sequencer: SlowestFirst },
    // Time to stop shared services after the run.
    teardownTimeout: 60_000,
  },
});

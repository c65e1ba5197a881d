import { globSync, readFileSync } from "node:fs";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.ts";

/** The tiers of files that their names say, such as `x.unit.test.ts`; `x.test.ts` is of the tier `service`. */
const named = ["unit", "browser", "system", "long"] as const;

type Tier = TestProjectInlineConfiguration["test"];

/** Holds for every tier. */
const common: Tier = {
  environment: "node",
  setupFiles: "test/support/each-file.ts",
  // Tests drive real browsers and a real database: two files at a time are what two cores carry.
  maxWorkers: 2,
  // Of the tests of a file that may run at once.
  maxConcurrency: 2,
  // What takes 10 s by itself takes 30 behind other suites.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // What a test polls for is done by other processes: behind the tests of another file the usual second is too short.
  expect: { poll: { timeout: 20_000 } },
  retry: 0,
  allowOnly: false,
};

/** Files of such a tier share a process, and with it the modules: they change nothing that the next one would see. */
const shared: Tier = { isolate: false };

const cluster = "test/support/cluster-template.ts";

const browser: Tier = { ...shared, globalSetup: ["test/support/warm-services.ts", cluster] };

const tiers: readonly Tier[] = [
  { name: "unit", ...shared },
  {
    name: "service",
    globalSetup: "test/support/shared-postgres.ts",
    exclude: named.map((tier) => `test/**/*.${tier}.test.ts`),
    ...shared,
  },
  { name: "system", globalSetup: cluster },
  // After all others: the services that its files share run to the end.
  { ...browser, name: "browser", provide: { runtimes: ["headless-shell"] } },
  // Minutes each: `npm run test-long`.
  { name: "long", globalSetup: cluster },
  // The files of the tier `browser` whose cases run in each runtime, in the other one: a part of `npm run test-long`.
  { ...browser, name: "chromium", include: filesByRuntime(), provide: { runtimes: ["chromium"] } },
];

function filesByRuntime(): string[] {
  const files = globSync("test/**/*.browser.test.ts");
  return files.filter((file) => readFileSync(file, "utf8").includes("/support/runtimes.ts"));
}

export default defineConfig({
  test: {
    projects: tiers.map((tier) => {
      const suffix = tier?.name === "service" ? "" : `.${tier?.name}`;
      return { test: { ...common, include: [`test/**/*${suffix}.test.ts`], ...tier } };
    }),
    sequence: { sequencer: SlowestFirst },
    // A service that files have shared is stopped in order after the run.
    teardownTimeout: 60_000,
  },
});

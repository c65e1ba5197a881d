import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import { type InstallPlan, planInstall } from "../../tools/browser-install.ts";

interface Case {
  name: string;
  found?: BrowserPaths;
  system: string;
  isRoot: boolean;
  answers: boolean;
  plan: InstallPlan;
}

const both = ["chromium", "chromium-headless-shell"];

const cases: Case[] = [
  {
    name: "nothing where both are there",
    found: { chromium: "/a", "headless-shell": "/b" },
    system: "debian",
    isRoot: true,
    answers: true,
    plan: { by: "nothing" },
  },
  {
    name: "Debian's packages as its root, without asking the download host",
    system: "debian",
    isRoot: true,
    answers: false,
    plan: { by: "apt", browsers: both },
  },
  {
    name: "only what is missing",
    found: { chromium: "/a" },
    system: "debian",
    isRoot: true,
    answers: true,
    plan: { by: "apt", browsers: ["chromium-headless-shell"] },
  },
  {
    name: "Playwright's with system libraries as Ubuntu's root",
    system: "ubuntu",
    isRoot: true,
    answers: true,
    plan: { by: "playwright", browsers: both, withDependencies: true },
  },
  {
    name: "Playwright's alone as an ordinary user",
    system: "debian",
    isRoot: false,
    answers: true,
    plan: { by: "playwright", browsers: both, withDependencies: false },
  },
  {
    name: "nobody's where the download host does not answer",
    system: "ubuntu",
    isRoot: true,
    answers: false,
    plan: { by: "nobody" },
  },
];

test.each(cases)("installs $name", async ({ found = {}, system, isRoot, answers, plan }) => {
  expect(await planInstall(found, { system, isRoot, downloadAnswers: async () => answers })).toEqual(plan);
});

test("a download host that accepts and never answers is given up within the promised time", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  if (address === null || typeof address === "string") throw new Error("The host listens on no port.");
  // Without the start of a process, which takes seconds on a busy machine.
  const ask = `import { downloadAnswers } from "./tools/browser-source.mjs";
    const began = performance.now();
    console.log(await downloadAnswers(), performance.now() - began < 5_000);`;
  const env = { ...process.env, PLAYWRIGHT_DOWNLOAD_HOST: `http://127.0.0.1:${address.port}` };
  const child = spawn(process.execPath, ["--input-type=module", "-e", ask], { env, timeout: 20_000 });
  const said = await child.stdout.setEncoding("utf8").toArray();
  silent.close();
  expect(said.join("")).toBe("false true\n");
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import { type InstallPlan, installByApt, planInstall } from "../../tools/browser-install.ts";

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
    plan: { by: "impossible" },
  },
];

test.each(cases)("installs $name", async ({ found = {}, system, isRoot, answers, plan }) => {
  expect(await planInstall(found, { system, isRoot, downloadAnswers: async () => answers })).toEqual(plan);
});

test("gives up a download host that accepts without a response within the documented time", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  if (address === null || typeof address === "string") throw new Error("The host listens on no port.");
  // Measured inside the process, because its start takes seconds on a busy machine.
  const ask = `import { downloadAnswers } from "./tools/browser-source.mjs";
    const began = performance.now();
    console.log(await downloadAnswers(), performance.now() - began < 5_000);`;
  const env = { ...process.env, PLAYWRIGHT_DOWNLOAD_HOST: `http://127.0.0.1:${address.port}` };
  const child = spawn(process.execPath, ["--input-type=module", "-e", ask], { env, timeout: 20_000 });
  const said = await child.stdout.setEncoding("utf8").toArray();
  silent.close();
  expect(said.join("")).toBe("false true\n");
});

const lockMessage = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)";

/** Puts an apt-get first on the PATH, which records its calls in `calls`. */
async function fakeApt(script: string): Promise<string> {
  const bin = await mkdtemp(join(tmpdir(), "pilothouse-apt-"));
  await writeFile(join(bin, "apt-get"), `#!/bin/sh\ncd ${bin}\necho "$1" >> calls\n${script}\n`);
  await chmod(join(bin, "apt-get"), 0o755);
  const { PATH } = process.env;
  process.env.PATH = `${bin}:${PATH}`;
  onTestFinished(async () => {
    process.env.PATH = PATH;
    await rm(bin, { recursive: true, force: true });
  });
  return join(bin, "calls");
}

test("waits for a lock of the package manager, and reports the wait once", async () => {
  const calls = await fakeApt(`[ "$(wc -l < calls)" -gt 2 ] || { echo "${lockMessage}" >&2; exit 100; }`);
  const notes: string[] = [];
  await installByApt(["chromium"], (line) => notes.push(line), { total: 60_000, between: 10 });
  expect((await readFile(calls, "utf8")).split("\n")).toEqual(["update", "update", "update", "install", ""]);
  expect(notes).toEqual([
    "another program holds /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr). Waiting for up to 1 min",
  ]);
});

test("names a lock that is never released, and fails immediately for other reasons", async () => {
  await fakeApt(`echo "${lockMessage}" >&2; exit 100`);
  await expect(installByApt([], () => undefined, { total: 20, between: 10 })).rejects.toThrow(
    "another program still holds /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)",
  );
  const calls = await fakeApt("echo E: Unable to locate package chromium >&2; exit 100");
  await expect(installByApt([], () => undefined)).rejects.toThrow("apt-get update ended with 100.");
  expect(await readFile(calls, "utf8")).toBe("update\n");
});

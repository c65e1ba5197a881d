import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clearGround, makeGround, StartedProject } from "./started-project.ts";

/** Makes the first process of a PID namespace, as a container's is: with its end, the kernel kills what is left. */
const asFirstProcess = ["unshare", "--pid", "--fork", "--mount-proc"];

/** What an ordinary user needs for that. */
const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];

test("SIGTERM to npm start as the first process of a container ends everything in order", async () => {
  const ground = await makeGround();
  onTestFinished(() => clearGround(ground));
  const project = new StartedProject(ground, [...asFirstProcess, ...asUser, "npm", "start"]);
  onTestFinished(() => project.stop());
  await project.pasteLines();
  const traces = ["worker.pid", "postgres/data/postmaster.pid"].map((path) => join(ground.dataDir, path));
  expect(traces.filter((path) => existsSync(path))).toEqual(traces);

  project.terminateFirst();
  expect(await project.ended()).toBe(0);
  // Only who ends in order takes these along.
  expect(traces.filter((path) => existsSync(path))).toEqual([]);
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
}, 120_000);

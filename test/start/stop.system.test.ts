import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clearGround, makeGround, StartedProject } from "./started-project.ts";

/**
 * Runs the command as the first process of a PID namespace, as in a container. When it ends, the kernel kills the rest.
 */
const asFirstProcess = ["unshare", "--pid", "--fork", "--mount-proc"];

/** Options that an ordinary user needs to create the namespace. */
const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];

test("SIGTERM to npm start as the first process of a container ends everything in order", async () => {
  const ground = await makeGround(true);
  onTestFinished(() => clearGround(ground));
  const project = new StartedProject(ground, [...asFirstProcess, ...asUser, "npm", "start"]);
  onTestFinished(() => project.stop());
  await project.pasteLines();
  const traces = ["worker.pid", "postgres/data/postmaster.pid"].map((path) => join(ground.dataDir, path));
  expect(traces.filter((path) => existsSync(path))).toEqual(traces);

  project.terminateFirst();
  expect(await project.ended()).toBe(0);
  // These files are deleted only by an orderly shutdown.
  expect(traces.filter((path) => existsSync(path))).toEqual([]);
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
}, 120_000);

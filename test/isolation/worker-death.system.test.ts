import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { readProcess } from "../../workers/isolation/processes.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { executables, isRoot, keepingLog } from "./world.ts";

interface Launched {
  directory: string;
  pids: number[];
}

/** Starts a worker in another process and waits until its browsers run. */
async function startDoomedWorker(scratch: readonly string[] = []) {
  const script = new URL("doomed-worker.ts", import.meta.url).pathname;
  const worker = spawn(process.execPath, ["--no-warnings", script, ...scratch], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void worker.kill("SIGKILL"));
  const [line] = (await once(createInterface(worker.stdout), "line")) as [string];
  const launched = JSON.parse(line) as Launched[];
  const pids = launched.flatMap((browser) => browser.pids);
  expect(pids.every((pid) => readProcess(pid))).toBe(true);
  const kill = async () => {
    worker.kill("SIGKILL");
    await once(worker, "exit");
  };
  return { kill, pids, directories: launched.map(({ directory }) => directory) };
}

test("the next worker kills processes left by a killed worker and removes its files", async () => {
  // As root, not the next worker's default directory. As an ordinary user the default, which has other blocks too.
  const { kill, pids, directories } = await startDoomedWorker(isRoot ? ["/tmp"] : []);
  expect(directories.every((directory) => existsSync(directory))).toBe(true);
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await kill();
  expect(pids.some((pid) => readProcess(pid))).toBe(true);
  const pool = new SlotPool({ size: 1, executables, log: keepingLog() });
  await pool.start();
  onTestFinished(() => pool.stop());
  expect(pids.filter((pid) => readProcess(pid))).toEqual([]);
  expect(directories.filter((directory) => existsSync(directory) && !isOf(pool, directory))).toEqual([]);
});

/** Checks that a new pool reuses the free block and recreates the directory of its first slot. */
function isOf(pool: SlotPool, directory: string): boolean {
  return pool.acquire()?.directory === directory;
}

test("a starting worker does not touch the browsers of a running one, which exit when their worker is killed", async () => {
  const { kill, pids, directories } = await startDoomedWorker();
  const pool = new SlotPool({ size: 1, executables, log: keepingLog() });
  await pool.start();
  expect(directories).not.toContain(pool.acquire()?.directory);
  await pool.stop();
  expect(pids.every((pid) => readProcess(pid))).toBe(true);
  await kill();
  await expect.poll(() => pids.filter((pid) => readProcess(pid)), { timeout: 10_000 }).toEqual([]);
});

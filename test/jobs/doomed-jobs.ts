import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { createJobQueues } from "../../src/jobs/job-queues.ts";
import { defineJob, type JobKind } from "../../src/kernel/job-kind.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { startOwnDatabase } from "../support/database.ts";

type Numbered = { readonly number: number };

/** Jobs of the processes that are killed. */
export function doomedWork(run: JobKind<Numbered>["run"]): JobKind<Numbered> {
  return defineJob({ kind: "doomed", width: 2, schedule: [], timeout: 60_000, run });
}

/** Number of jobs, queues and kills. */
export interface Ordeal {
  readonly jobs: number;
  readonly queues: number;
  readonly kills: number;
}

/** Milliseconds for the whole run. */
const timeout = 240_000;

/** Runs jobs in two processes, which are killed and replaced in turn. Expects that only kills repeat jobs. */
export async function goThrough({ jobs, queues, kills }: Ordeal): Promise<{ repeated: number; seconds: number }> {
  await using database = await startOwnDatabase();
  const { db, directory, url } = database;
  const file = join(directory, "done");
  await writeFile(file, "");
  const done = async () =>
    (await readFile(file, "utf8")).split("\n").flatMap((line) => (line === "" ? [] : [line.split(" ").map(Number)]));
  const processes = await Promise.all([startDoomed(url, file), startDoomed(url, file)]);
  const killed: number[] = [];
  const begin = performance.now();
  try {
    const jobQueues = createJobQueues({ bus: createLocalBus(), clock: systemClock });
    const kind = doomedWork(async () => undefined);
    const adding = Promise.all(
      Array.from({ length: queues }, async (_, queue) => {
        for (let number = queue; number < jobs; number += queues)
          await db.transaction(async (tx) =>
            jobQueues.enqueue(tx, kind, { queue: `queue ${queue}`, data: { number } }),
          );
      }),
    );
    for (let kill = 1; kill <= kills; kill += 1) {
      const share = (jobs * kill) / (kills + 2);
      expect(await waitUntil(async () => (await done()).length >= share, { timeout, every: 20 })).toBe(true);
      const victim = processes.shift();
      if (victim) killed.push(await end(victim));
      processes.push(await startDoomed(url, file));
    }
    await adding;
    const left = async () => (await db.sql.selectFrom("jobs").select("id").limit(1).execute()).length;
    expect(await waitUntil(async () => (await left()) === 0, { timeout, every: 100 })).toBe(true);
    const seconds = (performance.now() - begin) / 1_000;
    const runs = Map.groupBy(await done(), ([, number]) => number);
    expect(runs.size).toBe(jobs);
    const repeats = [...runs.values()].filter(({ length }) => length > 1);
    // Each earlier run of a repeated job must belong to a killed process.
    const earlier = repeats.flatMap((all) => all.slice(0, -1).map(([pid]) => pid));
    expect(earlier.filter((pid) => pid === undefined || !killed.includes(pid))).toEqual([]);
    return { repeated: repeats.length, seconds };
  } finally {
    await Promise.all(processes.map(end));
    await rm(file, { force: true });
  }
}

async function startDoomed(url: string, file: string): Promise<ChildProcess> {
  const program = new URL("doomed-runner.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, url, file], { stdio: ["ignore", "pipe", "inherit"] });
  if (child.stdout) await once(child.stdout, "data");
  return child;
}

async function end(child: ChildProcess): Promise<number> {
  const ended = once(child, "exit");
  if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await ended;
  return child.pid ?? 0;
}

import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createEmbeddedWorker, type EmbeddedWorker } from "../../src/fleet/embedded-worker.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { isAlive } from "../../src/platform/process-control.ts";
import { makeDataDirectory, silentLog } from "../support/database.ts";

const idleWorker = new URL("./idle-worker.ts", import.meta.url);
const refusingWorker = new URL("./refusing-worker.ts", import.meta.url);

let dataDir: string;
let workers: EmbeddedWorker[];
let deaths: number;
let heartbeats: number;

beforeEach(async () => {
  dataDir = await makeDataDirectory();
  workers = [];
  deaths = 0;
  heartbeats = 0;
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await rm(dataDir, { recursive: true, force: true });
});

function supervise({ leaseMs = 1_000, program = idleWorker } = {}): EmbeddedWorker {
  const worker = createEmbeddedWorker({
    dataDir,
    program: fileURLToPath(program),
    workerToken: "token",
    log: silentLog,
    heartbeats: () => heartbeats,
    leaseMs,
    onDeath: () => {
      deaths += 1;
    },
    env: { ...process.env, DATABASE_URL: "postgres://secret" },
  });
  workers.push(worker);
  return worker;
}

async function starts(): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(dataDir, "starts.jsonl"), "utf8").catch(() => "");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

const eventually = (check: () => unknown) => expect.poll(check, { timeout: 20_000, interval: 50 });

test("the supervisor starts a worker without the gateway's credentials and ends it", async () => {
  const worker = supervise();
  await worker.start();
  const { pid } = worker;
  await eventually(starts).toEqual([
    {
      pid,
      CONTROL: `unix:${dataDir}/fleet.sock`,
      WORKER_LISTEN: `unix:${dataDir}/worker.sock`,
      WORKER_TOKEN: "token",
    },
  ]);
  await worker.stop();
  expect(isAlive(pid ?? 0)).toBe(false);
  expect(deaths).toBe(0);
});

test("the supervisor restarts a worker that dies", async () => {
  const worker = supervise();
  await worker.start();
  await eventually(async () => (await starts()).length).toBe(1);
  process.kill(worker.pid ?? 0, "SIGKILL");
  await eventually(async () => (await starts()).length).toBe(2);
  expect(deaths).toBe(1);
  await eventually(async () => (await starts()).at(-1)?.pid).toBe(worker.pid);
});

test("the supervisor lets a worker start, and later replaces one that hangs", async () => {
  const worker = supervise();
  await worker.start();
  const hung = worker.pid ?? 0;
  await eventually(async () => (await starts()).length).toBe(1);
  // Longer than a lease, before the first heartbeat.
  await sleep(1_500);
  expect(worker.pid).toBe(hung);
  heartbeats += 1;
  process.kill(hung, "SIGSTOP");
  await eventually(async () => (await starts()).length).toBe(2);
  expect(isAlive(hung)).toBe(false);
  expect(worker.pid).not.toBe(hung);
  expect(deaths).toBe(1);
});

test("the supervisor does not mistake its own suspension for the worker's absence", async () => {
  const worker = supervise({ leaseMs: 5_000 });
  await worker.start();
  const { pid } = worker;
  heartbeats += 1;
  // Simulates a gateway that was suspended for several leases and checks twice before the next heartbeat.
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000);
  await eventually(() => clock.mock.calls.length).toBeGreaterThanOrEqual(2);
  clock.mockRestore();
  expect(worker.pid).toBe(pid);
  expect(deaths).toBe(0);
});

test("the supervisor adopts a worker that outlived its gateway", async () => {
  await supervise().start();
  await eventually(async () => (await starts()).length).toBe(1);
  // Second supervisor of the directory, as after a gateway was killed and restarted.
  const next = supervise();
  await next.start();
  expect(next.pid).toBe((await starts())[0]?.pid);
  expect(await starts()).toHaveLength(1);
});

test("the supervisor does not mistake another process with the same pid for its worker", async () => {
  await writeFile(join(dataDir, "worker.pid"), `${process.pid}\n`);
  const worker = supervise();
  await worker.start();
  expect(worker.pid).not.toBe(process.pid);
});

test("the supervisor does not restart a worker that ends before its first heartbeat, and reports its output", async () => {
  const worker = supervise({ program: refusingWorker });
  await worker.start();
  await expect(worker.up).rejects.toThrow(/^the worker does not start: no network.\nMissing: everything.$/);
  // Longer than the supervisor's restart delay.
  await sleep(1_000);
  expect(await starts()).toHaveLength(1);
});

test("the supervisor resolves `up` at the first heartbeat and restarts a worker that dies later", async () => {
  const worker = supervise();
  await worker.start();
  await eventually(async () => (await starts()).length).toBe(1);
  heartbeats += 1;
  await worker.up;
  process.kill(worker.pid ?? 0, "SIGKILL");
  await eventually(async () => (await starts()).length).toBe(2);
});

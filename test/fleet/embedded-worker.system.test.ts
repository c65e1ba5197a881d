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

test("should run a worker without our credentials, and end it", async () => {
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

test("should start a worker again when it dies", async () => {
  const worker = supervise();
  await worker.start();
  await eventually(async () => (await starts()).length).toBe(1);
  process.kill(worker.pid ?? 0, "SIGKILL");
  await eventually(async () => (await starts()).length).toBe(2);
  expect(deaths).toBe(1);
  await eventually(async () => (await starts()).at(-1)?.pid).toBe(worker.pid);
});

test("should let a worker come up, and then replace one that hangs", async () => {
  const worker = supervise();
  await worker.start();
  const hung = worker.pid ?? 0;
  await eventually(async () => (await starts()).length).toBe(1);
  // Longer than a lease: it has not sent a heartbeat yet.
  await sleep(1_500);
  expect(worker.pid).toBe(hung);
  heartbeats += 1;
  process.kill(hung, "SIGSTOP");
  await eventually(async () => (await starts()).length).toBe(2);
  expect(isAlive(hung)).toBe(false);
  expect(worker.pid).not.toBe(hung);
  expect(deaths).toBe(1);
});

test("should not take its own absence for the worker's", async () => {
  const worker = supervise({ leaseMs: 5_000 });
  await worker.start();
  const { pid } = worker;
  heartbeats += 1;
  // As a gateway that slept with its machine for several leases, and then looks twice before it hears a heartbeat.
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000);
  await eventually(() => clock.mock.calls.length).toBeGreaterThanOrEqual(2);
  clock.mockRestore();
  expect(worker.pid).toBe(pid);
  expect(deaths).toBe(0);
});

test("should go on with a worker that outlived its gateway", async () => {
  await supervise().start();
  await eventually(async () => (await starts()).length).toBe(1);
  // A second supervisor on the directory, as a gateway that was started after the first was killed.
  const next = supervise();
  await next.start();
  expect(next.pid).toBe((await starts())[0]?.pid);
  expect(await starts()).toHaveLength(1);
});

test("should not take another process for its worker because of its pid", async () => {
  await writeFile(join(dataDir, "worker.pid"), `${process.pid}\n`);
  const worker = supervise();
  await worker.start();
  expect(worker.pid).not.toBe(process.pid);
});

test("gives up a worker that ends before it has come up, with what that said last", async () => {
  const worker = supervise({ program: refusingWorker });
  await worker.start();
  await expect(worker.up).rejects.toThrow(/^the worker does not start: no network.\nMissing: everything.$/);
  // Longer than the supervisor waits before it starts one again.
  await sleep(1_000);
  expect(await starts()).toHaveLength(1);
});

test("resolves `up` at the first heartbeat, and starts a worker again that dies later", async () => {
  const worker = supervise();
  await worker.start();
  await eventually(async () => (await starts()).length).toBe(1);
  heartbeats += 1;
  await worker.up;
  process.kill(worker.pid ?? 0, "SIGKILL");
  await eventually(async () => (await starts()).length).toBe(2);
});

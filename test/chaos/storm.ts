import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { Footprint } from "../support/leftovers.ts";
import { readBooks } from "./storm-books.ts";
import { StormClient } from "./storm-client.ts";

export interface StormSize {
  readonly sessions: number;
  readonly waves: number;
  readonly atOnce: number;
  /** Milliseconds between kills. */
  readonly killEvery: number;
}

/** Result of a storm, which has passed if `faults` is empty. */
export interface StormReport {
  readonly faults: readonly string[];
  /** Number of responses of each kind. */
  readonly answers: ReadonlyMap<string, number>;
  /** Number of sessions by the reason of their end. */
  readonly endings: ReadonlyMap<string, number>;
  /** PSS in MiB of each process that was not killed, after the second and the last wave. */
  readonly memory: readonly { readonly name: string; readonly before: number; readonly after: number }[];
}

/** Milliseconds until a killed process is restarted, and for the last session to end. */
const away = 3_000;
const calm = 120_000;

/** V8 returns memory in several collections, about 10 s apart. Interval and number of measurements. */
const collections = { everyMs: 10_000, max: 9 };

/**
 * Serves sessions in waves on two gateways and three workers. From the third wave on, one gateway, one worker, Redis
 * and PostgreSQL are killed and restarted in turn.
 */
export async function runStorm(size: StormSize, say: (line: string) => void): Promise<StormReport> {
  const temporary = mkdtempSync(join(tmpdir(), "storm-"));
  const site = await new FixtureSite().start();
  // The machine is overloaded on purpose, and the shutdown does not wait for sessions.
  const workerEnv = { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100", DRAIN_SECONDS: "0", TMPDIR: temporary };
  const deployment = await Deployment.start({ workers: 3, slots: 4, workerEnv });
  const footprint = new Footprint(deployment.dataDir, temporary);
  const client = new StormClient(deployment, site);
  try {
    const memory = await runWaves(size, deployment, client, footprint, say);
    const faults = await settle(deployment);
    const books = await readBooks(deployment, client.ids);
    footprint.look();
    await deployment[Symbol.asyncDispose]();
    const left = [...new Set(footprint.leftovers())];
    return { faults: [...faults, ...books.faults, ...left], answers: client.answers, endings: books.endings, memory };
  } finally {
    await deployment[Symbol.asyncDispose]();
    await site.stop();
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function runWaves(
  { sessions, waves, atOnce, killEvery }: StormSize,
  deployment: Deployment,
  client: StormClient,
  footprint: Footprint,
  say: (line: string) => void,
): Promise<StormReport["memory"]> {
  let before = new Map<string, number>();
  let kills: Promise<void> = Promise.resolve();
  for (let wave = 1; wave <= waves; wave += 1) {
    if (wave === 3) kills = killInTurn(deployment, killEvery, say);
    const beganAt = performance.now();
    await client.run(Math.round(sessions / waves), atOnce);
    footprint.look();
    say(`wave ${wave}: ${((performance.now() - beganAt) / 1_000).toFixed(1)} s, ${client.ids.size} sessions so far`);
    if (wave === 2) before = await quietMemory(deployment);
  }
  await kills;
  const after = await quietMemory(deployment);
  return [...before].map(([name, pss]) => ({ name, before: pss, after: after.get(name) ?? 0 }));
}

async function killInTurn(deployment: Deployment, killEvery: number, say: (line: string) => void): Promise<void> {
  const { redis, postgres } = deployment;
  const victims = [
    { name: "a gateway", kill: () => deployment.gateway(0).kill(), start: () => deployment.gateway(0).start() },
    { name: "a worker", kill: () => deployment.worker(0).kill(), start: () => deployment.worker(0).start() },
    { name: "Redis", kill: () => redis.kill(), start: () => redis.restart() },
    { name: "PostgreSQL", kill: () => postgres.kill(), start: () => postgres.start() },
  ];
  for (const { name, kill, start } of victims) {
    await delay(killEvery - away);
    await kill();
    say(`  killed ${name}`);
    await delay(away);
    await start();
    say(`  ${name} is back`);
  }
}

/** Waits until no session runs. Launches of a killed gateway are abandoned after their deadline. */
async function settle(deployment: Deployment): Promise<string[]> {
  const isCalm = await waitUntil(async () => !(await isBusy(deployment)), { timeout: calm, every: 500 });
  if (!isCalm) return ["sessions run long after the storm"];
  const hasRoom = await waitUntil(async () => (await heldSlots(deployment)) === 0, { timeout: 15_000, every: 500 });
  return hasRoom ? [] : ["slots are held although no session runs"];
}

async function isBusy(deployment: Deployment): Promise<boolean> {
  for (const status of ["provisioning", "live", "paused"]) {
    const { body } = await deployment.gateway(1).rest(`/v1/sessions?status=${status}&limit=1`);
    if (body.data.length > 0) return true;
  }
  return false;
}

async function heldSlots(deployment: Deployment): Promise<number> {
  const metrics = await deployment.control(0).metrics();
  return Number(/^pilothouse_slots\{state="held",.*\} (\d+)/m.exec(metrics)?.[1] ?? Number.NaN);
}

/** Reads the memory of processes that are never killed, once idle browsers are gone and memory stays constant. */
async function quietMemory(deployment: Deployment): Promise<Map<string, number>> {
  await settle(deployment);
  let memory = readMemory(deployment);
  for (let left = collections.max; left > 0; left -= 1) {
    await delay(collections.everyMs);
    const before = memory;
    memory = readMemory(deployment);
    if ([...memory].every(([name, pss]) => pss > 0.98 * (before.get(name) ?? 0))) break;
  }
  return memory;
}

function readMemory(deployment: Deployment): Map<string, number> {
  const survivors = {
    "gateway 1": deployment.gateway(1),
    "worker 1": deployment.worker(1),
    "worker 2": deployment.worker(2),
  };
  return new Map(Object.entries(survivors).map(([name, { pid }]) => [name, pssOf(pid ?? 0)]));
}

function pssOf(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) / 1_024;
}

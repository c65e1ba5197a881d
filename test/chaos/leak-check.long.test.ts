import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type ProcessInternals, readInternals } from "../../tools/bench/load/inspector.ts";
import { LoadScene } from "../../tools/bench/load/load-scene.ts";
import { runSessions } from "../../tools/bench/load/run.ts";
import * as kinds from "../../tools/bench/load/session-kinds.ts";
import { excessOf, type Vitals, vitalsOf } from "../../tools/bench/load/vitals.ts";

/** `npm run leak-check` sets larger numbers. */
const waves = Number(process.env.LEAK_CHECK_WAVES ?? 3);
const sessionsPerWave = Number(process.env.LEAK_CHECK_SESSIONS ?? 7);

/** The wave after which all caches and modules are loaded. Later waves are compared with it. */
const warmWaves = 2;

/** Maximum ratio of memory after the last wave to memory after the warm one. */
const allowedGrowth = 1.1;

/** Milliseconds until unused connections and timers are closed. */
const settled = 45_000;

/** Concurrent requests that open all connections of the database pool, which then stay open for ten minutes. */
const burst = 200;

const wave = [
  kinds.ordinary,
  kinds.refused,
  kinds.disconnectedAtLaunch,
  kinds.brokenOff,
  kinds.killed,
  kinds.inChromium,
  kinds.abandoned,
];

interface Snapshot {
  readonly vitals: Vitals;
  readonly internals: ProcessInternals;
}

test("waves of sessions, errors, disconnects and kills leave nothing behind, and memory stays flat", async () => {
  // Browsers launched ahead vary with demand, and their resources would look like a leak.
  const scene = await LoadScene.start(sessionsPerWave, { WARM_BROWSERS: "0" });
  let left: string[] | undefined;
  onTestFinished(async () => void (left ?? (await scene.stop())));
  const snapshots: Record<"gateway" | "worker", Snapshot>[] = [];
  for (let number = 1; number <= waves; number += 1) {
    const kindOf = (index: number) => wave[index % wave.length] ?? kinds.ordinary;
    const { messages } = await runSessions(scene, { count: sessionsPerWave, atOnce: 4, kindOf });
    expect(messages).toEqual([]);
    await scene.endAll();
    await Promise.all(Array.from({ length: burst }, () => scene.rest("/v1/sessions?limit=1")));
    scene.look();
    if (number === warmWaves || number === waves)
      snapshots.push({ gateway: await snap("gateway"), worker: await snap("worker") });
  }

  async function snap(name: "gateway" | "worker"): Promise<Snapshot> {
    const pid = scene.pids[name];
    const internals = await readInternals(pid);
    const resources = await peakResources(pid, internals.resources);
    return { internals: { ...internals, resources }, vitals: vitalsOf(pid) };
  }

  const [warm, last] = snapshots;
  for (const name of ["gateway", "worker"] as const) {
    const before = warm?.[name];
    const after = last?.[name];
    if (!before || !after) throw new Error("there are too few waves");
    console.log(describe(name, before, after));
    const now = () => excessOf(vitalsOf(scene.pids[name]), before.vitals);
    await expect.poll(now, { timeout: settled, interval: 500 }).toEqual([]);
    const growing = async () => growth((await readInternals(scene.pids[name])).resources, before.internals.resources);
    await expect.poll(growing, { timeout: settled, interval: 2_000 }).toEqual([]);
    expect(after.internals.heapBytes / before.internals.heapBytes, `heap of the ${name}`).toBeLessThan(allowedGrowth);
    expect(after.vitals.pssBytes / before.vitals.pssBytes, `PSS of the ${name}`).toBeLessThan(allowedGrowth);
  }
  expect(await scene.heldSlots()).toBe(0);
  left = await scene.stop();
  expect(left).toEqual([]);
}, 600_000);

/** Returns the maximum of each kind within some seconds, because concurrent jobs vary. */
async function peakResources(
  pid: number,
  first: ProcessInternals["resources"],
): Promise<ProcessInternals["resources"]> {
  const max = { ...first };
  for (let looks = 4; looks > 0; looks -= 1) {
    await delay(2_000);
    for (const [kind, count] of Object.entries((await readInternals(pid)).resources))
      max[kind] = Math.max(count, max[kind] ?? 0);
  }
  return max;
}

/** Lists the kinds of event loop resources that have increased. */
function growth(now: ProcessInternals["resources"], before: ProcessInternals["resources"]): string[] {
  return Object.entries(now)
    .filter(([kind, count]) => count > (before[kind] ?? 0))
    .map(([kind, count]) => `${count} ${kind} instead of ${before[kind] ?? 0}`);
}

function describe(name: string, before: Snapshot, after: Snapshot): string {
  const numbers = ({ vitals, internals }: Snapshot) =>
    `PSS ${(vitals.pssBytes / 1e6).toFixed(1)} MB, heap ${(internals.heapBytes / 1e6).toFixed(1)} MB, ${JSON.stringify({ ...vitals.descriptors, ...internals.resources })}`;
  return `${name} after wave ${warmWaves}: ${numbers(before)}\n${name} after wave ${waves}: ${numbers(after)}`;
}

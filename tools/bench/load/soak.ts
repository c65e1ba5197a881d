// npm run soak: runs sessions of all kinds, four at a time, against one service. Prints the held resources after every
// hundred sessions, and leaks at the end. The argument is the number of sessions.
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { treePssBytes } from "../processes.ts";
import { type ProcessInternals, readInternals } from "./inspector.ts";
import { LoadScene } from "./load-scene.ts";
import { type RunFaults, runSessions } from "./run.ts";
import { abandoned, inChromium, killed, ordinary, type SessionKind } from "./session-kinds.ts";
import { excessOf, type Vitals, vitalsOf } from "./vitals.ts";

const sessions = 2_000;
const atOnce = 4;

/** Sessions per line. Of 20 sessions, one is killed, one is abandoned, and one runs in full Chromium. */
const lineEvery = 100;

/** Milliseconds between checks of whether warm browsers still end. The pool forgets demand within this time. */
const settleMs = 40_000;

/** Allowed growth in descriptors. A leak of one per hundred sessions exceeds this after 2,000 sessions. */
const slack = 4;

/** Allowed growth of a process from the second line to the end. */
const growth = 1.1;

interface Line {
  readonly gateway: Vitals & ProcessInternals;
  readonly worker: Vitals & ProcessInternals;
}

function kindOf(index: number): SessionKind {
  const kinds: Readonly<Record<number, SessionKind>> = { 5: killed, 11: abandoned, 17: inChromium };
  return kinds[index % 20] ?? ordinary;
}

async function main(argument: string | undefined): Promise<void> {
  const total = Number(argument ?? sessions);
  if (!(Number.isInteger(total) && total > 0)) throw new Error("the argument is a number of sessions");
  const scene = await LoadScene.start(2 * atOnce);
  let warm: Line | undefined;
  let last: Line | undefined;
  const problems: string[] = [];
  try {
    process.stdout.write("sessions  per s  PSS gateway  worker  postgres (MB)  descriptors  running  errors\n");
    for (let done = 0; done < total; ) {
      const count = Math.min(lineEvery, total - done);
      const beganAt = performance.now();
      const faults = await runSessions(scene, { count, atOnce, kindOf });
      const rate = count / ((performance.now() - beganAt) / 1_000);
      done += count;
      problems.push(...faults.messages);
      process.stdout.write(await describe(scene, { done, rate, faults, line: await readLine(scene) }));
      if (done === 2 * lineEvery) warm = await readIdle(scene);
    }
    last = await readIdle(scene);
  } finally {
    problems.push(...compare(warm, last), ...(await scene.stop()));
  }
  for (const problem of problems) process.stdout.write(`  ${problem}\n`);
  process.stdout.write(problems.length === 0 ? "passed: nothing was left\n" : `failed: ${problems.length} faults\n`);
  if (problems.length > 0) process.exitCode = 1;
}

/** Reads the held resources when no session runs and only the permanent warm browsers exist. */
async function readIdle(scene: LoadScene): Promise<Line> {
  await scene.endAll();
  let children = -1;
  const isSettled = async () => {
    const before = children;
    ({ children } = vitalsOf(scene.pids.worker));
    return children === before;
  };
  if (!(await waitUntil(isSettled, { timeout: 5 * settleMs, every: settleMs })))
    throw new Error("the number of the worker's processes keeps changing");
  return readLine(scene);
}

async function readLine({ pids }: LoadScene): Promise<Line> {
  const read = async (pid: number) => ({ ...(await readInternals(pid)), ...vitalsOf(pid) });
  return { gateway: await read(pids.gateway), worker: await read(pids.worker) };
}

async function describe(
  scene: LoadScene,
  { done, rate, faults, line }: { done: number; rate: number; faults: RunFaults; line: Line | undefined },
): Promise<string> {
  const megabytes = (bytes = 0) => (bytes / 1e6).toFixed(0);
  const count = (vitals?: Vitals) => Object.values(vitals?.descriptors ?? {}).reduce((sum, more) => sum + more, 0);
  const cells = [
    String(done).padStart(8),
    rate.toFixed(2).padStart(7),
    megabytes(line?.gateway.pssBytes).padStart(12),
    megabytes(line?.worker.pssBytes).padStart(7),
    megabytes(treePssBytes(scene.pids.postgres)).padStart(14),
    `${count(line?.gateway)}+${count(line?.worker)}`.padStart(12),
    String((await scene.running()).length).padStart(8),
    [...faults.bySlug].map(([slug, times]) => `${slug} ${times}`).join(", ") || "none",
  ];
  return `${cells.join(" ")}\n`;
}

/** Returns the resources that the last line has in excess of the second line. Shorter runs are not compared. */
function compare(warm: Line | undefined, last: Line | undefined): string[] {
  if (!warm || !last) return [];
  return (["gateway", "worker"] as const).flatMap((name) => {
    const sizes = (["pssBytes", "heapBytes"] as const)
      .filter((size) => last[name][size] > warm[name][size] * growth)
      .map((size) => `${size} ${last[name][size]} instead of ${warm[name][size]}`);
    return [...sizes, ...excessOf(last[name], warm[name], slack)].map((excess) => `${name}: ${excess}`);
  });
}

main(process.argv[2]).catch((error: unknown) => {
  process.stderr.write(`soak: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
});

import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds of a tick of /proc (USER_HZ is 100 on every Linux that Node runs on). */
const tickMs = 10;

/** CPU times of a process from /proc. */
export interface ProcessTimes {
  readonly pid: number;
  readonly parent: number;
  readonly startedAt: number;
  /** CPU milliseconds of the process itself. */
  readonly ownMs: number;
  /** CPU milliseconds of reaped children. */
  readonly reapedMs: number;
}

/** Reads a process; undefined if it has ended. */
function readProcess(pid: number): ProcessTimes | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The process name, in brackets, may contain any characters. The next field is number 3 of proc(5).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3]);
  return {
    pid,
    parent: field(4),
    startedAt: field(22),
    ownMs: (field(14) + field(15)) * tickMs,
    reapedMs: (field(16) + field(17)) * tickMs,
  };
}

/** Reads a process and its descendants. */
export function readTree(root: number): ProcessTimes[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? []);
  const tree = all.filter(({ pid }) => pid === root);
  for (const known of tree) tree.push(...all.filter(({ parent }) => parent === known.pid));
  return tree;
}

/** Returns the CPU milliseconds of a process tree, including ended descendants. */
export function treeCpuMs(root: number): number {
  return readTree(root).reduce((sum, { ownMs, reapedMs }) => sum + ownMs + reapedMs, 0);
}

/** Returns the CPU milliseconds of one process. */
export function ownCpuMs(pid: number): number {
  const found = readProcess(pid);
  if (!found) throw new Error(`process ${pid} has ended`);
  return found.ownMs;
}

/** Returns the PSS of a process in bytes; 0 if it has ended. */
export function pssBytes(pid: number): number {
  const match = /^Pss:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/smaps_rollup`) ?? "");
  return Number(match?.[1] ?? 0) * 1024;
}

/** Returns the PSS of a process tree in bytes. */
export function treePssBytes(root: number): number {
  return readTree(root).reduce((sum, { pid }) => sum + pssBytes(pid), 0);
}

/** Returns the busy CPU milliseconds of the machine since boot. */
export function hostBusyMs(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    (readText("/proc/stat") ?? "").slice(0, 200).split("\n", 1)[0]?.split(/\s+/).map(Number) ?? [];
  return (user + nice + system + irq + softirq) * tickMs;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

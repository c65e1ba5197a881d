import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds of a tick of /proc (USER_HZ is 100 on every Linux that Node runs on). */
const tickMs = 10;

/** What /proc says of a process. */
export interface ProcessTimes {
  readonly pid: number;
  readonly parent: number;
  readonly startedAt: number;
  /** CPU milliseconds of its own. */
  readonly ownMs: number;
  /** CPU milliseconds of the children that it has waited for. */
  readonly reapedMs: number;
}

/** Reads a process; undefined when it has gone. */
function readProcess(pid: number): ProcessTimes | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name, in brackets, may hold anything; field 3 of proc(5) is the first after it.
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

/** Reads a process and all that descend from it. */
export function readTree(root: number): ProcessTimes[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? []);
  const tree = all.filter(({ pid }) => pid === root);
  for (const known of tree) tree.push(...all.filter(({ parent }) => parent === known.pid));
  return tree;
}

/** CPU milliseconds of a process and of all that descend from it, those among them that have ended included. */
export function treeCpuMs(root: number): number {
  return readTree(root).reduce((sum, { ownMs, reapedMs }) => sum + ownMs + reapedMs, 0);
}

/** CPU milliseconds of a process alone. */
export function ownCpuMs(pid: number): number {
  const found = readProcess(pid);
  if (!found) throw new Error(`process ${pid} has gone`);
  return found.ownMs;
}

/** Bytes of a process in memory, of shared pages its share (PSS); 0 when it has gone. */
export function pssBytes(pid: number): number {
  const match = /^Pss:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/smaps_rollup`) ?? "");
  return Number(match?.[1] ?? 0) * 1024;
}

/** The same of a process and of all that descend from it. */
export function treePssBytes(root: number): number {
  return readTree(root).reduce((sum, { pid }) => sum + pssBytes(pid), 0);
}

/** CPU milliseconds that the whole machine has worked since it started. */
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

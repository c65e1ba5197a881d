import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Cgroup, findCgroups, readText } from "./cgroups.ts";

/** What may close a worker, each a share from 0 to 1. */
export interface Pressure {
  /** Memory in use and not given back at once, of the tightest bound. */
  readonly memory: number;
  /** Time in which nothing ran for want of memory. */
  readonly memory_stall: number;
  /** Time that what wants a core waits for one. */
  readonly cpu: number;
}

/** Over how many milliseconds the number of runnable tasks is averaged: as the kernel's own `avg10`. */
const averageMs = 10_000;

/**
 * Reads the pressure on this machine and on the control groups that bound this process, whichever is higher. Where the
 * kernel tells nothing (macOS) there is none.
 */
export class PressureReader {
  readonly #root: string;
  readonly #cores: number;
  readonly #cgroups: readonly Cgroup[];
  #runnable = 0;
  #readAt: number | undefined;

  /** `root` is where the kernel's files are: `/`, but in tests. */
  constructor(root = "/", cores = availableParallelism()) {
    this.#root = root;
    this.#cores = cores;
    this.#cgroups = findCgroups(root);
  }

  /** Reads it: a few files of the kernel's, some 200 µs. */
  read(now = performance.now()): Pressure {
    const memories = this.#cgroups.flatMap((cgroup) => memoryOf(cgroup) ?? []);
    const total = this.#hostMemory();
    const bounds = memories.filter(({ limit }) => limit < total.limit);
    const stalls = bounds.map(({ directory }) => stalled(join(directory, "memory.pressure"), "full") ?? 0);
    const host = join(this.#root, "proc/pressure");
    return {
      memory: Math.max(...[total, ...bounds].map(({ used, limit }) => (limit > 0 ? used / limit : 0))),
      memory_stall: Math.max(stalled(join(host, "memory"), "full") ?? 0, ...stalls),
      cpu: Math.max(this.#crowding(now, stalled(join(host, "cpu"), "some") ?? 1), ...this.#throttling()),
    };
  }

  #hostMemory(): { used: number; limit: number } {
    const text = readText(join(this.#root, "proc/meminfo"));
    const limit = field(text, /^MemTotal:\s+(\d+)/m) ?? 0;
    return { used: (limit - (field(text, /^MemAvailable:\s+(\d+)/m) ?? limit)) * 1_024, limit: limit * 1_024 };
  }

  /**
   * The kernel's "some" is 1 as soon as one task more than there are cores runs, which a busy worker is for minutes and
   * bears well. How long the queue is tells how bad it is: of r tasks on c cores each waits 1 - c/r of its time.
   */
  #crowding(now: number, some: number): number {
    const runnable = field(readText(join(this.#root, "proc/loadavg")), /(\d+)\/\d+/) ?? 0;
    const elapsed = this.#readAt === undefined ? 0 : now - this.#readAt;
    this.#readAt = now;
    this.#runnable += (runnable - this.#runnable) * (1 - Math.exp(-elapsed / averageMs));
    return Math.min(some, Math.max(0, 1 - this.#cores / Math.max(this.#runnable, this.#cores)));
  }

  /** A group with a quota of its own is throttled while the machine is idle: nothing in it runs then. */
  #throttling(): number[] {
    return this.#cgroups
      .filter(({ version, directory }) => version === 2 && /^\d/.test(readText(join(directory, "cpu.max"))))
      .map(({ directory }) => stalled(join(directory, "cpu.pressure"), "full") ?? 0);
  }
}

/** Reads a group's memory: what it may use, and what it uses but for files that are given back at once. */
function memoryOf({ version, directory }: Cgroup): { directory: string; used: number; limit: number } | undefined {
  const number = (name: string) => field(readText(join(directory, name)), /^(\d+)/);
  const stat = readText(join(directory, "memory.stat"));
  const used = number(version === 2 ? "memory.current" : "memory.usage_in_bytes");
  if (used === undefined) return undefined;
  // Above `high` the kernel slows the group down until it hardly runs: that is its limit as much as `max` is.
  const limits = version === 2 ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"];
  const limit = Math.min(...limits.map((name) => number(name) ?? Number.POSITIVE_INFINITY));
  const cache = field(stat, version === 2 ? /^inactive_file (\d+)/m : /^total_inactive_file (\d+)/m) ?? 0;
  return { directory, used: Math.max(0, used - cache), limit };
}

/** Reads the share of the last 10 s from a file of pressure stall information; undefined where the kernel has none. */
function stalled(path: string, line: "some" | "full"): number | undefined {
  const percent = field(readText(path), new RegExp(`^${line} avg10=([0-9.]+)`, "m"));
  return percent === undefined ? undefined : percent / 100;
}

function field(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Cgroup, findCgroups, readText } from "./cgroups.ts";

/** Pressures at which a worker can refuse new sessions. Each is a share from 0 to 1. */
export interface Pressure {
  /**
   * Highest share in use of the machine's memory or of a control group's limit, without immediately reclaimable memory.
   */
  readonly memory: number;
  /** Share of the last 10 s in which all tasks stalled on memory. */
  readonly memory_stall: number;
  /**
   * Share of time in which runnable tasks wait for a core, or in which a CPU quota stalls all tasks of a control group.
   */
  readonly cpu: number;
}

/** Time constant, in milliseconds, for averaging the number of runnable tasks. As in the kernel's `avg10`. */
const averageMs = 10_000;

/**
 * Reads the pressure of the machine or of this process's control groups, whichever is higher. The pressure is 0 without
 * kernel data, as on macOS.
 */
export class PressureReader {
  readonly #root: string;
  readonly #cores: number;
  readonly #cgroups: readonly Cgroup[];
  #runnable = 0;
  #readAt: number | undefined;

  /** `root` is the directory with the mount points of the kernel's files. */
  constructor(root = "/", cores = availableParallelism()) {
    this.#root = root;
    this.#cores = cores;
    this.#cgroups = findCgroups(root);
  }

  /** Reads the current pressure from kernel files, in about 200 µs. */
  read(now = performance.now()): Pressure {
    const memories = this.#cgroups.flatMap((cgroup) => memoryOf(cgroup) ?? []);
    const total = this.#hostMemory();
    const bounds = memories.filter(({ limit }) => limit < total.limit);
    const stalls = bounds.map(({ directory }) => stalled(join(directory, "memory.pressure"), "full") ?? 0);
    const host = join(this.#root, "proc/pressure");
    return {
      memory: Math.max(...[total, ...bounds].map(({ used, limit }) => (limit > 0 ? used / limit : 0))),
      memory_stall: Math.max(stalled(join(host, "memory"), "full") ?? 0, ...stalls),
      cpu: Math.max(this.#cpuContention(now, stalled(join(host, "cpu"), "some") ?? 1), ...this.#throttling()),
    };
  }

  #hostMemory(): { used: number; limit: number } {
    const text = readText(join(this.#root, "proc/meminfo"));
    const limit = field(text, /^MemTotal:\s+(\d+)/m) ?? 0;
    return { used: (limit - (field(text, /^MemAvailable:\s+(\d+)/m) ?? limit)) * 1_024, limit: limit * 1_024 };
  }

  /**
   * Returns the share of time in which tasks wait for a core: 1 - c/r for an average of r runnable tasks on c cores.
   * The result is at most the kernel's "some" value. That value alone is too sensitive: it reaches 1 with one task more
   * than cores, which is normal for a busy worker.
   */
  #cpuContention(now: number, some: number): number {
    const runnable = field(readText(join(this.#root, "proc/loadavg")), /(\d+)\/\d+/) ?? 0;
    const elapsed = this.#readAt === undefined ? 0 : now - this.#readAt;
    this.#readAt = now;
    this.#runnable += (runnable - this.#runnable) * (1 - Math.exp(-elapsed / averageMs));
    return Math.min(some, Math.max(0, 1 - this.#cores / Math.max(this.#runnable, this.#cores)));
  }

  /**
   * Returns the shares of time in which all tasks of a group with a CPU quota stalled. A quota can stall tasks while
   * the machine is idle.
   */
  #throttling(): number[] {
    return this.#cgroups
      .filter(({ version, directory }) => version === 2 && /^\d/.test(readText(join(directory, "cpu.max"))))
      .map(({ directory }) => stalled(join(directory, "cpu.pressure"), "full") ?? 0);
  }
}

/**
 * Returns a group's memory limit and usage, without immediately reclaimable file cache. Undefined if the usage cannot
 * be read.
 */
function memoryOf({ version, directory }: Cgroup): { directory: string; used: number; limit: number } | undefined {
  const number = (name: string) => field(readText(join(directory, name)), /^(\d+)/);
  const stat = readText(join(directory, "memory.stat"));
  const used = number(version === 2 ? "memory.current" : "memory.usage_in_bytes");
  if (used === undefined) return undefined;
  // Above `high`, the kernel throttles the group until it hardly runs, so `high` counts as a limit too.
  const limits = version === 2 ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"];
  const limit = Math.min(...limits.map((name) => number(name) ?? Number.POSITIVE_INFINITY));
  const cache = field(stat, version === 2 ? /^inactive_file (\d+)/m : /^total_inactive_file (\d+)/m) ?? 0;
  return { directory, used: Math.max(0, used - cache), limit };
}

/** Returns the stall share of the last 10 s from a PSI file, or undefined without kernel support. */
function stalled(path: string, line: "some" | "full"): number | undefined {
  const percent = field(readText(path), new RegExp(`^${line} avg10=([0-9.]+)`, "m"));
  return percent === undefined ? undefined : percent / 100;
}

function field(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

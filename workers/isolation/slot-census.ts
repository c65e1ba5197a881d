import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { readKernelFile } from "./kernel-file.ts";

/** How to tell the processes of a slot. */
export interface Occupant {
  /** The slot's own uid, where it has one. */
  readonly uid: number | undefined;
  /** Else the process that leads the session of all that a launch started. */
  readonly leader: number | undefined;
}

/** What the processes of a slot take. */
export interface SlotUsage {
  readonly pids: readonly number[];
  readonly tasks: number;
  /**
   * No less than what they take of memory: pages that several of them share count for each, which makes 240 MiB of an
   * idle Chromium's 150. Their exact share (PSS) takes the kernel a walk over every page, 4 to 16 ms a process, and this
   * sum 20 µs: `exactMemory` is asked where it matters.
   */
  readonly memoryBytes: number;
}

/** After so many counts strangers are looked at again: a pid may have become another's. */
const forgetAfter = 10;

/** Counts what slots take, all in one pass over /proc. */
export class SlotCensus {
  /** Processes that belong to no slot: on a machine with many they are not read each time. */
  #strangers = new Set<number>();
  #counts = 0;

  /** Gives the usage of each occupant, in their order. */
  count(occupants: readonly Occupant[]): SlotUsage[] {
    this.#counts += 1;
    const before = this.#counts % forgetAfter === 0 ? new Set<number>() : this.#strangers;
    this.#strangers = new Set();
    const usages = occupants.map(() => ({ pids: [] as number[], tasks: 0, memoryBytes: 0 }));
    const byUid = indexOf(occupants, ({ uid }) => uid);
    const byLeader = indexOf(occupants, ({ uid, leader }) => (uid === undefined ? leader : undefined));
    for (const pid of listPids()) {
      const status = before.has(pid) ? "" : readKernelFile(`/proc/${pid}/status`);
      const index = status && (byUid.get(field(status, "Uid")) ?? byLeader.get(field(status, "NSsid")));
      const usage = index === "" || index === undefined ? undefined : usages[index];
      if (!usage) {
        this.#strangers.add(pid);
        continue;
      }
      usage.pids.push(pid);
      usage.tasks += field(status, "Threads");
      usage.memoryBytes += (field(status, "RssAnon") + field(status, "RssShmem") + field(status, "VmSwap")) * 1_024;
    }
    return usages;
  }
}

/** Gives the same memory as exactly as the kernel tells it: of a page that n share an n-th for each. */
export async function exactMemory({ pids, memoryBytes }: SlotUsage): Promise<number> {
  const read = (pid: number) => readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const rollups = await Promise.all(pids.map(read));
  // An ordinary user may not look into a sandboxed renderer.
  if (rollups.includes("")) return memoryBytes;
  const shares = rollups.map((text) => field(text, "Pss_Anon") + field(text, "Pss_Shmem") + field(text, "SwapPss"));
  return shares.reduce((sum, share) => sum + share, 0) * 1_024;
}

function indexOf(
  occupants: readonly Occupant[],
  keyOf: (occupant: Occupant) => number | undefined,
): Map<number | undefined, number> {
  return new Map(occupants.flatMap((occupant, index) => (keyOf(occupant) ? [[keyOf(occupant), index] as const] : [])));
}

function listPids(): number[] {
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    // There is no such directory on macOS.
    return [];
  }
}

/** Reads the first number of a line such as `Threads:\t17`; 0 where there is no such line. */
function field(text: string, name: string): number {
  const at = text.indexOf(`\n${name}:`);
  return at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 2, at + name.length + 40), 10) || 0;
}

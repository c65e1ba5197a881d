import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { readKernelFile } from "./kernel-file.ts";

/** Identifies the processes of an isolation slot. */
export interface Occupant {
  /** Uid of the slot's processes. Undefined if slots have no uids. */
  readonly uid: number | undefined;
  /**
   * Pid of the leader of the process session that the launch created. Undefined if not known. Used only without a uid.
   */
  readonly leader: number | undefined;
}

/** Resource usage of a slot's processes. */
export interface SlotUsage {
  readonly pids: readonly number[];
  readonly tasks: number;
  /**
   * Upper bound of the memory in use. A page that several processes share counts once per process: 240 MiB for an idle
   * Chromium that uses 150 MiB. Reading the upper bound takes 20 µs per process. The exact share (PSS, see
   * `exactMemory`) takes 4 to 16 ms per process.
   */
  readonly memoryBytes: number;
}

/** Number of passes after which unrelated pids are read again, because the kernel reuses pids. */
const passesUntilReread = 10;

/** Measures the usage of all slots in one pass over /proc. */
export class SlotCensus {
  /** Pids of processes outside every slot, which are skipped until the next full pass. */
  #unrelated = new Set<number>();
  #counts = 0;

  /** Returns the usage of each occupant, in input order. */
  count(occupants: readonly Occupant[]): SlotUsage[] {
    this.#counts += 1;
    const before = this.#counts % passesUntilReread === 0 ? new Set<number>() : this.#unrelated;
    this.#unrelated = new Set();
    const usages = occupants.map(() => ({ pids: [] as number[], tasks: 0, memoryBytes: 0 }));
    const byUid = indexOf(occupants, ({ uid }) => uid);
    const byLeader = indexOf(occupants, ({ uid, leader }) => (uid === undefined ? leader : undefined));
    for (const pid of listPids()) {
      const status = before.has(pid) ? "" : readKernelFile(`/proc/${pid}/status`);
      const index = status && (byUid.get(field(status, "Uid")) ?? byLeader.get(field(status, "NSsid")));
      const usage = index === "" || index === undefined ? undefined : usages[index];
      if (!usage) {
        this.#unrelated.add(pid);
        continue;
      }
      usage.pids.push(pid);
      usage.tasks += field(status, "Threads");
      usage.memoryBytes += (field(status, "RssAnon") + field(status, "RssShmem") + field(status, "VmSwap")) * 1_024;
    }
    return usages;
  }
}

/**
 * Returns the memory in bytes as proportional set size: a page shared by n processes counts 1/n for each. Returns the
 * upper bound if the share of any process cannot be read.
 */
export async function exactMemory({ pids, memoryBytes }: SlotUsage): Promise<number> {
  const read = (pid: number) => readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const rollups = await Promise.all(pids.map(read));
  // Without root, the smaps of a sandboxed renderer cannot be read. Neither can those of a process that has ended.
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
    // macOS has no /proc.
    return [];
  }
}

/** Returns the first number of a line such as `Threads:\t17`, or 0 if the line is missing. */
function field(text: string, name: string): number {
  const at = text.indexOf(`\n${name}:`);
  return at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 2, at + name.length + 40), 10) || 0;
}

import { statfsSync } from "node:fs";
import { diskUsage } from "./disk-usage.ts";

/**
 * Milliseconds between measurements of an owner's directories while the free disk space does not shrink. Measuring the
 * 500 files of a browser takes 5 ms.
 */
const idleMs = 30_000;

/**
 * Divisor of the bound. If the free space of a disk has shrunk by `bound / step`, the next call measures all
 * directories.
 */
const step = 16;

/** Directories measured as one sum. The directories may be on different disks. */
export interface MeasuredDirectories {
  readonly directories: readonly string[];
  measuredAt: number | undefined;
}

/**
 * Finds owners with directories that exceed a bound. Walks the directories of an owner only every 30 s, or if the free
 * disk space has shrunk.
 */
export class DiskWatch {
  readonly #bound: number;
  /** Highest free bytes of each disk since all directories were last measured. */
  #free: readonly number[] = [];
  #running = false;

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Measures owners that are due and reports each that exceeds the bound. Does nothing while an earlier call runs. */
  async measure<Owner extends MeasuredDirectories>(
    owners: readonly Owner[],
    onOver: (owner: Owner, bytes: number) => void,
    now = performance.now(),
  ): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    try {
      const areAllDue = this.#hasShrunk(owners[0]?.directories ?? []);
      const due = ({ measuredAt }: Owner) => areAllDue || now - (measuredAt ?? 0) >= idleMs;
      for (const owner of owners.filter(due)) {
        owner.measuredAt = now;
        const bytes = await diskUsage(owner.directories, this.#bound);
        if (bytes > this.#bound) onOver(owner, bytes);
      }
    } finally {
      this.#running = false;
    }
  }

  /**
   * Returns whether the free space of a disk has shrunk by a step. Checks the disks of one owner only, because all
   * slots of a worker share the same disks.
   */
  #hasShrunk(directories: readonly string[]): boolean {
    const free = directories.map((directory, disk) => freeBytes(directory) ?? this.#free[disk] ?? 0);
    const isLess = free.some((bytes, disk) => (this.#free[disk] ?? 0) - bytes >= this.#bound / step);
    this.#free = isLess ? free : free.map((bytes, disk) => Math.max(bytes, this.#free[disk] ?? 0));
    return isLess;
  }
}

function freeBytes(directory: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  } catch {
    // The directory is missing if the slot is being cleared.
    return undefined;
  }
}

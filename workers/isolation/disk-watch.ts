import { statfsSync } from "node:fs";
import { diskUsage } from "./disk-usage.ts";

/** How often a directory is measured although its disk shows no change: a browser's 500 files take 5 ms. */
const idleMs = 30_000;

/** The part of the bound by which a disk's free space shrinks before all directories are measured at once. */
const step = 16;

/** Directories that are measured together; they may lie on several disks. */
export interface MeasuredDirectories {
  readonly directories: readonly string[];
  measuredAt: number | undefined;
}

/** Finds who has directories that have grown beyond a bound, and walks them only when that can be. */
export class DiskWatch {
  readonly #bound: number;
  /** Free bytes of each disk when all directories had last been measured, or most since. */
  #free: readonly number[] = [];
  #running = false;

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Measures those that are due, and tells of each that is over the bound; does nothing while it measures. */
  async look<Owner extends MeasuredDirectories>(
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

  /** The slots of a worker lie on the same disks. */
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
    // The slot is being cleared.
    return undefined;
  }
}

import { statfsSync } from "node:fs";
import { diskUsage } from "./disk-usage.ts";

/** How often a directory is measured although its disk shows no change: a browser's 500 files take 5 ms. */
const idleMs = 30_000;

/** The part of the bound by which the disk's free space shrinks before all directories are measured at once. */
const step = 16;

/** A directory that is measured. */
export interface MeasuredDirectory {
  readonly directory: string;
  measuredAt: number | undefined;
}

/** Finds directories that have grown beyond a bound, and walks them only when that can be. */
export class DiskWatch {
  readonly #bound: number;
  /** Free bytes when all directories had last been measured, or most since. */
  #free = 0;
  #running = false;

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Measures the directories that are due, and tells of each that is over the bound; does nothing while it measures. */
  async look<Directory extends MeasuredDirectory>(
    directories: readonly Directory[],
    onOver: (directory: Directory, bytes: number) => void,
    now = performance.now(),
  ): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    try {
      const areAllDue = this.#hasShrunk(directories[0]?.directory);
      const due = ({ measuredAt }: Directory) => areAllDue || now - (measuredAt ?? 0) >= idleMs;
      for (const entry of directories.filter(due)) {
        entry.measuredAt = now;
        const bytes = await diskUsage(entry.directory, this.#bound);
        if (bytes > this.#bound) onOver(entry, bytes);
      }
    } finally {
      this.#running = false;
    }
  }

  /** All slots of a worker are on one disk. */
  #hasShrunk(directory: string | undefined): boolean {
    if (directory === undefined) return false;
    const free = freeBytes(directory);
    if (free === undefined) return false;
    const isLess = this.#free - free >= this.#bound / step;
    this.#free = isLess ? free : Math.max(free, this.#free);
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

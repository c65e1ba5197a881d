import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";

/** Size of a block in `stat(2)`, whatever the file system's own is. */
const block = 512;

/** What an entry counts as at least: a million empty files are as much of a burden, and take as long to walk. */
const leastBytes = 32 * 1_024;

/** Entries looked at before others get their turn, 10 µs each. */
const atOnce = 500;

/**
 * Adds up what the files of directories take on disk, links not followed, and stops as soon as it is more than `bound`. What
 * cannot be counted is more: no browser makes a path longer than the kernel takes, to hide files below it.
 */
export async function diskUsage(roots: readonly string[], bound: number): Promise<number> {
  let bytes = 0;
  let seen = 0;
  const directories = [...roots];
  for (let current = directories.pop(); current !== undefined && bytes <= bound; current = directories.pop()) {
    for (const name of namesIn(current)) {
      const path = join(current, name);
      bytes += sizeOf(path, directories);
      if (bytes > bound) break;
      seen += 1;
      if (seen % atOnce === 0) await breathe();
    }
  }
  return bytes;
}

function sizeOf(path: string, directories: string[]): number {
  try {
    // Whatever has gone meanwhile counts as nothing.
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory()) directories.push(path);
    return found ? Math.max(found.blocks * block, leastBytes) : 0;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";

/** Unit of `st_blocks` in stat(2), in bytes. The file system's own block size may differ. */
const block = 512;

/** Minimum number of bytes counted per file or directory, so that many empty files count too. */
const minBytes = 32 * 1_024;

/** Number of entries examined before yielding to the event loop. Each takes about 10 µs. */
const atOnce = 500;

/**
 * Returns the disk usage of directories in bytes. Links are not followed. Stops once the sum exceeds `bound`. Returns
 * infinity if lstat(2) fails for an entry, or if the worker may not list a directory: a browser must not hide files
 * below a path that is too long for the kernel, or in a directory without read permission.
 */
export async function diskUsage(roots: readonly string[], bound: number): Promise<number> {
  let bytes = 0;
  let seen = 0;
  const directories = [...roots];
  for (let current = directories.pop(); current !== undefined && bytes <= bound; current = directories.pop()) {
    const names = namesIn(current);
    if (!names) return Number.POSITIVE_INFINITY;
    for (const name of names) {
      const path = join(current, name);
      bytes += sizeOf(path, directories);
      if (bytes > bound) break;
      seen += 1;
      if (seen % atOnce === 0) await yieldToEventLoop();
    }
  }
  return bytes;
}

function sizeOf(path: string, directories: string[]): number {
  try {
    // An entry deleted during the walk counts as 0.
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory()) directories.push(path);
    return found ? Math.max(found.blocks * block, minBytes) : 0;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Returns undefined if the worker may not list the directory. */
function namesIn(directory: string): string[] | undefined {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EACCES") return undefined;
    // A directory deleted during the walk counts as empty.
    return [];
  }
}

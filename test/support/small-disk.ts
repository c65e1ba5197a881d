import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Separate file system that a test may fill. */
export interface SmallDisk extends Disposable {
  /** Directory that all users may enter. */
  readonly directory: string;
  /** Uses all free space. Returns a function that frees the space. */
  fill(): () => void;
}

/** Mounts a file system of a size such as `64m` in memory. Requires root. */
export function mountSmallDisk(size: string): SmallDisk {
  const point = mkdtempSync(join(tmpdir(), "small-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=0711`, "tmpfs", point]);
  const directory = join(point, "data");
  mkdirSync(directory);
  chmodSync(directory, 0o711);
  return {
    directory,
    fill: () => fill(join(directory, "ballast")),
    [Symbol.dispose]() {
      execFileSync("umount", [point]);
      rmdirSync(point);
    },
  };
}

function fill(path: string): () => void {
  const file = openSync(path, "w");
  try {
    // Fills the last bytes too, because a database page needs only 8 KiB.
    for (let block = Buffer.alloc(64 * 1024, 1); block.length > 512; block = block.subarray(block.length / 2)) {
      while (hasRoom(file, block));
    }
  } finally {
    closeSync(file);
  }
  return () => rmSync(path);
}

function hasRoom(file: number, block: Buffer): boolean {
  try {
    return writeSync(file, block) === block.length;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOSPC") return false;
    throw error;
  }
}

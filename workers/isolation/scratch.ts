import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

/** World-writable shared memory file system on Linux. */
const sharedMemory = "/dev/shm";

/** TMPFS_MAGIC of statfs(2). */
const tmpfs = 0x01021994;

/** Required size of shared memory: the disk bound of four sessions. Containers have 64 MiB by default. */
const enoughBytes = 4 * 2 ** 30;

/**
 * Returns the directory for files of running sessions. Slots with uids use memory if there is room: launches are then 7
 * to 15 % faster and 1,000 small profile files up to 30 times, at 6 MB per idle full Chromium. Otherwise slots use
 * /tmp, because TMPDIR may be below a private home directory that their uids cannot enter.
 */
export function findScratch(hasUids: boolean): string {
  if (!hasUids) return tmpdir();
  return isInMemory(sharedMemory) ? sharedMemory : "/tmp";
}

function isInMemory(path: string): boolean {
  try {
    const { type, bsize, blocks } = statfsSync(path);
    return type === tmpfs && bsize * blocks >= enoughBytes;
  } catch {
    return false;
  }
}

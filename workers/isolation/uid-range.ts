import { readFileSync } from "node:fs";

/** Isolation slots per block, which is the maximum per worker. */
export const blockSize = 256;

/** Blocks per machine, which is also the maximum number of workers. */
export const maxBlocks = 64;

/**
 * Candidates for the first slot uid: above the users and services of a machine, or, in a container with 65,536 uids,
 * in the unused upper half.
 */
const bases = [200_000, 32_768] as const;

/** Returns the first uid for slots, or undefined if this process cannot assign uids. */
export function findUidBase(): number | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  return chooseUidBase(readFileSync("/proc/self/uid_map", "utf8"), readFileSync("/proc/self/gid_map", "utf8"));
}

/**
 * Returns the first base for which all uids and gids of the slots are mapped in this user namespace, if any. The maps
 * have the format of /proc/self/uid_map.
 */
export function chooseUidBase(uidMap: string, gidMap: string): number | undefined {
  return bases.find((base) => [uidMap, gidMap].every((map) => covers(map, base, blockSize * maxBlocks)));
}

function covers(map: string, first: number, count: number): boolean {
  return map
    .trim()
    .split("\n")
    .some((line) => {
      const [inside = 0, , length = 0] = line.trim().split(/\s+/).map(Number);
      return inside <= first && first + count <= inside + length;
    });
}

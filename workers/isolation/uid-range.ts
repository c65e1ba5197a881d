import { readFileSync } from "node:fs";

/** Slots in a block; a worker of more would take two machines. */
export const blockSize = 256;

/** Blocks of a machine, that is workers. */
export const maxBlocks = 64;

/**
 * Where the uids of slots may begin: above people and services of a machine; or, in a container that is given the usual
 * 65,536 uids, in their upper half, which nobody uses there.
 */
const bases = [200_000, 32_768] as const;

/** Finds the first uid for slots, or undefined where this process may not give them uids of their own. */
export function findUidBase(): number | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  return chooseUidBase(readFileSync("/proc/self/uid_map", "utf8"), readFileSync("/proc/self/gid_map", "utf8"));
}

/** Chooses the first uid for slots such that all of their uids and gids exist in this user namespace (its maps in /proc). */
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

import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Environment and user of the service, which determine the location of its data. */
export interface DataOwner {
  env: Record<string, string | undefined>;
  uid: number;
  home: string;
}

/** Returns the data directory: `DATA_DIR`, else /var/lib/pilothouse for root, else a directory in the user's home. */
export function dataDirectory({ env, uid, home }: DataOwner): string {
  if (env.DATA_DIR) return env.DATA_DIR;
  if (uid === 0) return "/var/lib/pilothouse";
  return join(env.XDG_DATA_HOME || join(home, ".local", "share"), "pilothouse");
}

/**
 * Creates a directory if missing. Other users may traverse the new directory, because PostgreSQL and browsers run as
 * other users.
 */
export async function makePassableDirectory(path: string): Promise<void> {
  if (await makeDirectory(path)) await chmod(path, 0o711);
}

/** Creates a directory and its parents. Returns whether it is new. Node's `recursive` loops forever below /proc. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return false;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    await makeDirectory(dirname(path));
    await mkdir(path);
    return true;
  }
}

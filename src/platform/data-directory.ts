import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Who runs the service, as far as it decides where data is kept. */
export interface DataOwner {
  env: Record<string, string | undefined>;
  uid: number;
  home: string;
}

/** The directory of everything the service keeps: `DATA_DIR`, else root's system-wide one, else the user's own. */
export function dataDirectory({ env, uid, home }: DataOwner): string {
  if (env.DATA_DIR) return env.DATA_DIR;
  if (uid === 0) return "/var/lib/pilothouse";
  return join(env.XDG_DATA_HOME || join(home, ".local", "share"), "pilothouse");
}

/** Makes a directory unless it is there. Others may pass it: PostgreSQL and browsers run as users of their own below it. */
export async function makePassableDirectory(path: string): Promise<void> {
  if (await makeDirectory(path)) await chmod(path, 0o711);
}

/** Makes a directory and those above it, and returns whether it is new. Node's own `recursive` never ends below /proc. */
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

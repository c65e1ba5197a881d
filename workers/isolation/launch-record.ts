import { readFileSync } from "node:fs";
import { homeOf, type ProcessEntry, readProcess } from "./processes.ts";

/** Process of a launch, which leads the process session and group of all its children. */
export interface LaunchRecord {
  pid: number;
  /** Start time in clock ticks since boot, if known. Distinguishes a reused pid. */
  startedAt: number | undefined;
}

/** Reads the record written by launch.sh (a line of /proc/<pid>/stat). Returns undefined if launch.sh never ran. */
export function readLaunchRecord(path: string): LaunchRecord | undefined {
  let line: string;
  try {
    line = readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
  const pid = Number.parseInt(line, 10);
  if (!(pid > 1)) return undefined;
  const startedAt = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[19]);
  return { pid, startedAt: Number.isNaN(startedAt) ? undefined : startedAt };
}

/**
 * Creates a matcher for processes of this user's launches: members of their process sessions, and processes with a slot
 * as HOME. The latter include Chromium's crash handlers, which create their own process sessions.
 */
export function matchLaunches(
  records: readonly LaunchRecord[],
  directories: ReadonlySet<string>,
): (entry: ProcessEntry) => boolean {
  // The kernel does not reuse a session id while the session has members, so only the leader's pid can be stale.
  const leaders = new Set(
    records
      .filter(({ pid, startedAt }) => {
        const now = readProcess(pid);
        return now === undefined || now.startedAt === startedAt;
      })
      .map(({ pid }) => pid),
  );
  const own = process.getuid?.();
  return ({ pid, uid, session, group }) =>
    uid === own && (leaders.has(session) || leaders.has(group) || directories.has(homeOf(pid) ?? ""));
}

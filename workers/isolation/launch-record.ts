import { readFileSync } from "node:fs";
import { homeOf, type ProcessEntry, readProcess } from "./processes.ts";

/** First process of a browser's launch. It leads the process session and the process group of its children. */
export interface LaunchRecord {
  pid: number;
  /** Start time in clock ticks since boot, if known. Distinguishes a reused pid. */
  startedAt: number | undefined;
}

/**
 * Reads the record written by launch.sh (a line of /proc/<pid>/stat). Returns undefined if the record is missing or
 * invalid.
 */
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
 * Creates a matcher for processes of this user's launches: members of their process sessions or groups, and processes
 * with a slot's directory as HOME. The latter include Chromium's crash handlers, which create their own process
 * sessions.
 */
export function matchLaunches(
  records: readonly LaunchRecord[],
  directories: ReadonlySet<string>,
): (entry: ProcessEntry) => boolean {
  // The kernel does not reuse the id of a process session that has members. If the pid belongs to a process with
  // another start time, the process session has therefore ended.
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

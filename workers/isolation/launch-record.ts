import { readFileSync } from "node:fs";
import { homeOf, type ProcessEntry, readProcess } from "./processes.ts";

/** The process that a launch became: leader of its own session and process group, which all that it starts belong to. */
export interface LaunchRecord {
  pid: number;
  /** Clock ticks since boot, where the system tells: a pid alone may have become another process. */
  startedAt: number | undefined;
}

/** Reads what launch.sh noted of its process (the line of /proc/<pid>/stat), or gives undefined where it never ran. */
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
 * Makes a test for the processes that launches of this user left: members of the launches' sessions, and whatever was
 * started with a slot's directory as its home (Chromium's crash handlers make sessions of their own).
 */
export function matchLaunches(
  records: readonly LaunchRecord[],
  directories: ReadonlySet<string>,
): (entry: ProcessEntry) => boolean {
  // While a member of a session lives the kernel gives its number to no other process, so only a leader can deceive.
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

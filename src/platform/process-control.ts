import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { waitUntil } from "./bounded-wait.ts";

/** One thing to try on a process that should end. */
export interface EndingStep {
  readonly signal: NodeJS.Signals;
  /** Milliseconds until the next step. */
  readonly patience: number;
  /** Sends it to the process group that the process leads. */
  readonly group?: boolean;
}

/** Says whether a process exists; one of another user counts. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Sends signals, one after the other, until the process is gone; false when it outlives them all. */
export async function endProcess(pid: number, steps: readonly EndingStep[]): Promise<boolean> {
  for (const { signal, patience, group } of steps) {
    try {
      process.kill(group ? -pid : pid, signal);
    } catch {
      // It has ended meanwhile; the wait below sees it.
    }
    if (await waitUntil(() => !isAlive(pid), { timeout: patience, every: 10 })) return true;
  }
  return false;
}

/**
 * Returns when a process started, as text that differs from that of another process with the same pid; empty when there is
 * none. On Linux `ps` would compute it from a clock that can be set, so the ticks since boot are returned there.
 */
export async function startTime(pid: number): Promise<string> {
  if (process.platform !== "linux") return askPs(pid, "lstart=");
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field, the program's name, may have spaces and brackets.
  return status.slice(status.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Reads the command line of a process; empty when there is none. `ps` is there on Linux and macOS alike. */
export function commandLine(pid: number): Promise<string> {
  return askPs(pid, "args=");
}

function askPs(pid: number, field: string): Promise<string> {
  return new Promise((resolve) => {
    execFile("ps", ["-ww", "-o", field, "-p", String(pid)], { timeout: 2_000 }, (_error, output) => {
      resolve(output.trim());
    });
  });
}

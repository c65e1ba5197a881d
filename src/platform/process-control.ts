import { execFile } from "node:child_process";
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

/** Reads the command line of a process; empty when there is none. `ps` is there on Linux and macOS alike. */
export function commandLine(pid: number): Promise<string> {
  return new Promise((resolve) => {
    execFile("ps", ["-ww", "-o", "args=", "-p", String(pid)], { timeout: 2_000 }, (_error, output) => {
      resolve(output.trim());
    });
  });
}

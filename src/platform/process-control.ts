import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { waitUntil } from "./bounded-wait.ts";

/** An attempt to end a process. */
export interface EndingStep {
  readonly signal: NodeJS.Signals;
  /** Milliseconds to wait for the end before the next step. */
  readonly timeoutMs: number;
  /** Whether to signal the process group. */
  readonly group?: boolean;
}

/** Returns whether a process exists, including those of other users. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Sends signals in order until the process has ended. Returns false if the process survives all signals. */
export async function endProcess(pid: number, steps: readonly EndingStep[]): Promise<boolean> {
  for (const { signal, timeoutMs, group } of steps) {
    try {
      process.kill(group ? -pid : pid, signal);
    } catch {
      // The process has already ended, as the wait below confirms.
    }
    if (await waitUntil(() => !isAlive(pid), { timeout: timeoutMs, every: 10 })) return true;
  }
  return false;
}

/**
 * Returns the start time of a process, to detect a reused pid, or an empty string if the process does not exist. On
 * Linux, returns ticks since boot, because `ps` computes times from an adjustable clock.
 */
export async function startTime(pid: number): Promise<string> {
  if (process.platform !== "linux") return readPs(pid, "lstart=");
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field, the program's name, may contain spaces and parentheses.
  return status.slice(status.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Returns the command line of a process, or an empty string. `ps` exists on Linux and macOS. */
export function commandLine(pid: number): Promise<string> {
  return readPs(pid, "args=");
}

function readPs(pid: number, field: string): Promise<string> {
  return new Promise((resolve) => {
    execFile("ps", ["-ww", "-o", field, "-p", String(pid)], { timeout: 2_000 }, (_error, output) => {
      resolve(output.trim());
    });
  });
}

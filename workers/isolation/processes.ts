import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { readKernelFile } from "./kernel-file.ts";

/** How often a wait for processes to be gone looks again. */
const pollMs = 5;

/** How long one stroke may take, and how often one that was itself killed by its victims is repeated. */
const strokeMs = 5_000;
const maxStrokes = 10;

/** What the kernel tells everyone about a process; a killed one that nobody has reaped yet is not listed. */
export interface ProcessEntry {
  readonly pid: number;
  readonly uid: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks since boot: with the pid it names one process for good. */
  readonly startedAt: number;
}

/** Lists the processes for which the test holds; one that is told apart by its uid costs one read, about 15 µs. */
export function findProcesses(matches: (entry: ProcessEntry) => boolean): ProcessEntry[] {
  const found: ProcessEntry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const entry = Number.isInteger(pid) ? readProcess(pid) : undefined;
    if (entry && matches(entry)) found.push(entry);
  }
  return found;
}

/** Reads one process, or gives undefined when it has ended. */
export function readProcess(pid: number): ProcessEntry | undefined {
  const status = readKernelFile(`/proc/${pid}/status`);
  // The owner of /proc/<pid> is root for sandboxed renderers (not dumpable), so the uid comes from the status.
  const [, state = "X", uid] = /^State:\t(\w)[\s\S]*?^Uid:\t(\d+)/m.exec(status) ?? [];
  return state === "Z" || state === "X" ? undefined : new Process(pid, Number(uid));
}

/** What is asked of few processes is read when it is asked. */
class Process implements ProcessEntry {
  readonly pid: number;
  readonly uid: number;
  #stat: readonly string[] | undefined;

  constructor(pid: number, uid: number) {
    this.pid = pid;
    this.uid = uid;
  }

  get group(): number {
    return this.#field(2);
  }

  get session(): number {
    return this.#field(3);
  }

  get startedAt(): number {
    return this.#field(19);
  }

  /** A field counted from the state; not a number where the process has ended meanwhile. */
  #field(index: number): number {
    if (!this.#stat) {
      const stat = readKernelFile(`/proc/${this.pid}/stat`);
      // The name in parentheses may itself hold spaces and parentheses: fields are counted from the last one.
      this.#stat = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    }
    return Number(this.#stat[index]);
  }
}

/** Gives the inode of a process's network namespace, or undefined where the process has ended or hides it from us. */
export function networkNamespaceOf(pid: number): number | undefined {
  try {
    return Number(/\d+/.exec(readlinkSync(`/proc/${pid}/ns/net`))?.[0]);
  } catch {
    return undefined;
  }
}

/** Gives the home directory that a process was started with, or undefined where the process has ended or hides it from us. */
export function homeOf(pid: number): string | undefined {
  try {
    return /(?:^|\0)HOME=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * Kills processes until none is left for which the test holds, and gives what is still there at the deadline.
 * It looks and kills again because a process may have started another between the look and the kill, unless all of them
 * are stricken: a look takes 3 ms on a machine with 200 processes.
 */
export async function killProcesses(
  matches: (entry: ProcessEntry) => boolean,
  deadlineMs: number,
  areStricken = false,
): Promise<ProcessEntry[]> {
  const endsAt = performance.now() + deadlineMs;
  for (;;) {
    const left = findProcesses(matches);
    if (left.length === 0 || performance.now() > endsAt) return left;
    const doomed = left.map(({ pid, startedAt }) => ({ pid, startedAt }));
    for (const { pid } of doomed) sendKill(pid);
    await delay(pollMs);
    while (performance.now() < endsAt && doomed.some(isRunning)) await delay(pollMs);
    if (areStricken && !doomed.some(isRunning)) return [];
  }
}

/**
 * Kills every process of a slot's uid in one stroke of the kernel's, 5 ms. What forks faster than /proc can be read is in
 * no list, and would live on into the next session of its uid. The stroke comes from inside the slot's confinement,
 * because for a moment it has that uid and what is to be killed may take hold of it. Tells whether the stroke was done:
 * then none of them can start another any more, be it in the middle of a fork.
 */
export async function killUid(confine: readonly string[]): Promise<boolean> {
  const [command = "", ...parameters] = [...confine, "sh", "-c", "kill -9 -1"];
  for (let stroke = 0; stroke < maxStrokes; stroke += 1) {
    const child = spawn(command, parameters, { stdio: "ignore", cwd: "/", timeout: strokeMs, killSignal: "SIGKILL" });
    const status = await new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
    if (status === 0) return true;
  }
  return false;
}

/** Tells whether a process has not ended; its pid alone may have become another's. */
function isRunning({ pid, startedAt }: { pid: number; startedAt: number | undefined }): boolean {
  return readProcess(pid)?.startedAt === startedAt;
}

/** Sends SIGKILL; a process that has just ended, or that has become another user's, is left alone. */
function sendKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended since it was listed.
  }
}

import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { readKernelFile } from "./kernel-file.ts";

/** Milliseconds between checks while waiting for processes to end. */
const pollMs = 5;

/** Timeout of one `kill -9 -1` in milliseconds. */
const killMs = 5_000;
/** Maximum number of attempts of `kill -9 -1`. A process of the slot may kill the `kill` process first. */
const maxKillAttempts = 10;

/** A running process, as /proc shows it to all users. Zombies are excluded. */
export interface ProcessEntry {
  readonly pid: number;
  readonly uid: number;
  readonly group: number;
  readonly session: number;
  /** Start time in clock ticks since boot. Identifies the process together with its pid. */
  readonly startedAt: number;
}

/** Returns the processes that match. A process matched by uid costs one read, about 15 µs. */
export function findProcesses(matches: (entry: ProcessEntry) => boolean): ProcessEntry[] {
  const found: ProcessEntry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const entry = Number.isInteger(pid) ? readProcess(pid) : undefined;
    if (entry && matches(entry)) found.push(entry);
  }
  return found;
}

/** Returns a process, or undefined if it has ended or is a zombie. */
export function readProcess(pid: number): ProcessEntry | undefined {
  const status = readKernelFile(`/proc/${pid}/status`);
  // Sandboxed renderers are not dumpable and their /proc/<pid> is owned by root, so the uid is read from the status.
  const [, state = "X", uid] = /^State:\t(\w)[\s\S]*?^Uid:\t(\d+)/m.exec(status) ?? [];
  return state === "Z" || state === "X" ? undefined : new Process(pid, Number(uid));
}

/** Reads /proc/<pid>/stat lazily, because few processes need it. */
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

  /** Returns a field of /proc/<pid>/stat; index 0 is the state. NaN if the process has ended. */
  #field(index: number): number {
    if (!this.#stat) {
      const stat = readKernelFile(`/proc/${this.pid}/stat`);
      // The process name may contain spaces and parentheses, so fields are counted from the last parenthesis.
      this.#stat = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    }
    return Number(this.#stat[index]);
  }
}

/** Returns the inode of a process's network namespace, or undefined if it cannot be read. */
export function networkNamespaceOf(pid: number): number | undefined {
  try {
    return Number(/\d+/.exec(readlinkSync(`/proc/${pid}/ns/net`))?.[0]);
  } catch {
    return undefined;
  }
}

/** Returns the HOME with which a process was started, or undefined if its environment has no HOME or cannot be read. */
export function homeOf(pid: number): string | undefined {
  try {
    return /(?:^|\0)HOME=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * Kills matching processes until none is left. Returns the processes that remain after `deadlineMs`. Repeats, because a
 * process can fork between listing and kill. If `wereKilled`, all processes have already received SIGKILL and cannot
 * fork, so no second listing follows: listing 200 processes takes 3 ms.
 */
export async function killProcesses(
  matches: (entry: ProcessEntry) => boolean,
  deadlineMs: number,
  wereKilled = false,
): Promise<ProcessEntry[]> {
  const endsAt = performance.now() + deadlineMs;
  for (;;) {
    const left = findProcesses(matches);
    if (left.length === 0 || performance.now() > endsAt) return left;
    const targets = left.map(({ pid, startedAt }) => ({ pid, startedAt }));
    for (const { pid } of targets) sendKill(pid);
    await delay(pollMs);
    while (performance.now() < endsAt && targets.some(isRunning)) await delay(pollMs);
    if (wereKilled && !targets.some(isRunning)) return [];
  }
}

/**
 * Kills every process of a slot's uid with one `kill -9 -1` (5 ms). Processes that fork faster than /proc can be read
 * would otherwise survive into the next session of the uid. The `kill` process has the slot's uid, so the slot's
 * processes can attack it. It therefore runs inside the slot's confinement. Resolves to true if the kill ran; no
 * process of the uid can fork then.
 */
export async function killUid(confine: readonly string[]): Promise<boolean> {
  const [command = "", ...parameters] = [...confine, "sh", "-c", "kill -9 -1"];
  for (let attempt = 0; attempt < maxKillAttempts; attempt += 1) {
    const child = spawn(command, parameters, { stdio: "ignore", cwd: "/", timeout: killMs, killSignal: "SIGKILL" });
    const status = await new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
    if (status === 0) return true;
  }
  return false;
}

/** Returns whether a process still runs. Compares start times, because pids are reused. */
function isRunning({ pid, startedAt }: { pid: number; startedAt: number | undefined }): boolean {
  return readProcess(pid)?.startedAt === startedAt;
}

function sendKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended or belongs to another user.
  }
}

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { networkNamespaceOf, type ProcessEntry, readProcess } from "../../workers/isolation/processes.ts";

/** Process with properties that identify its owner. */
export interface ListedProcess extends ProcessEntry {
  readonly parent: number;
  readonly command: string;
  readonly directory: string;
  /** DATA_DIR of its environment. */
  readonly dataDir: string | undefined;
  /** Inode of its network namespace; undefined if it cannot be read. */
  readonly network: number | undefined;
}

/** Lists all processes of the machine. */
export function listProcesses(): ListedProcess[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid))
    .map(describeProcess)
    .filter((found) => found !== undefined);
}

/** Describes a process; undefined if it has exited. */
export function describeProcess(pid: number): ListedProcess | undefined {
  const entry = readProcess(pid);
  if (!entry) return undefined;
  // Read now, because an entry's properties are unavailable after the process exits.
  const { uid, group, session, startedAt } = entry;
  return {
    pid,
    uid,
    group,
    session,
    startedAt,
    parent: Number(/^PPid:\t(\d+)/m.exec(read(pid, "status"))?.[1]),
    command: read(pid, "cmdline").replaceAll("\0", " ").trim(),
    directory: readLink(`/proc/${pid}/cwd`),
    dataDir: /(?:^|\0)DATA_DIR=([^\0]*)/.exec(read(pid, "environ"))?.[1],
    network: networkNamespaceOf(pid),
  };
}

/** Returns all descendants of a process. */
export function descendantsOf(ancestor: number, all: readonly ListedProcess[] = listProcesses()): ListedProcess[] {
  const children = all.filter(({ parent }) => parent === ancestor);
  return children.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
}

/** Returns whether a process seen before is still alive. The start time distinguishes a reused pid. */
export function isStillThere({ pid, startedAt }: ProcessEntry): boolean {
  return readProcess(pid)?.startedAt === startedAt;
}

/** Returns the paths of a process's open files. */
export function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((descriptor) => readLink(`/proc/${pid}/fd/${descriptor}`));
  } catch {
    return [];
  }
}

/** Reads a file of a process; empty if the process has exited or the file cannot be read. */
function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

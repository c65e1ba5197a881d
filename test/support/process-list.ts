import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { networkNamespaceOf, type ProcessEntry, readProcess } from "../../workers/isolation/processes.ts";

/** A process with what tells whose it is. */
export interface ListedProcess extends ProcessEntry {
  readonly parent: number;
  readonly command: string;
  readonly directory: string;
  /** DATA_DIR of its environment. */
  readonly dataDir: string | undefined;
  /** Inode of its network namespace; undefined where the process hides it. */
  readonly network: number | undefined;
}

/** Lists every process of the machine. */
export function listProcesses(): ListedProcess[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid))
    .map(describeProcess)
    .filter((found) => found !== undefined);
}

/** Describes one process; undefined when it has ended. */
export function describeProcess(pid: number): ListedProcess | undefined {
  const entry = readProcess(pid);
  if (!entry) return undefined;
  // Read now: what is asked of an entry later is no longer there when its process has ended.
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

/** Selects what a process has started, and what those have. */
export function descendantsOf(ancestor: number, all: readonly ListedProcess[] = listProcesses()): ListedProcess[] {
  const children = all.filter(({ parent }) => parent === ancestor);
  return children.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
}

/** Says whether a process lives on that was seen before: the pid alone may be another's by now. */
export function isStillThere({ pid, startedAt }: ProcessEntry): boolean {
  return readProcess(pid)?.startedAt === startedAt;
}

/** Gives the paths of the files that a process has open. */
export function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((descriptor) => readLink(`/proc/${pid}/fd/${descriptor}`));
  } catch {
    return [];
  }
}

/** Reads a file of a process; empty when it has ended or hides the file. */
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

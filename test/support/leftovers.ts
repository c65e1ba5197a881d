import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readProcess } from "../../workers/isolation/processes.ts";
import { findScratch } from "../../workers/isolation/scratch.ts";
import { blockSize } from "../../workers/isolation/uid-range.ts";
import { descendantsOf, isStillThere, type ListedProcess, listProcesses, openFilesOf } from "./process-list.ts";

/** Directory of the locks of slot blocks for workers of root, and the first uid of the first block. */
const locks = "/run/pilothouse";
const firstUid = 200_000;

/** Everything that a service has been seen to use, which distinguishes its leftovers from those of others. */
export class Footprint {
  readonly #dataDir: string;
  readonly #temporary: string;
  readonly #seen = new Map<string, ListedProcess>();
  readonly #blocks = new Set<number>();

  /** `temporary` is the TMPDIR of the service. */
  constructor(dataDir: string, temporary: string) {
    this.#dataDir = dataDir;
    this.#temporary = temporary;
  }

  /** Records the running processes. */
  look(): void {
    const all = listProcesses();
    const own = all.filter((entry) => this.#isOwn(entry));
    for (const entry of own.flatMap((parent) => [parent, ...descendantsOf(parent.pid, all)])) {
      this.#seen.set(`${entry.pid} ${entry.startedAt}`, entry);
      for (const target of openFilesOf(entry.pid)) {
        const block = /^\/run\/pilothouse\/block-(\d+)\.lock$/.exec(target)?.[1];
        if (block !== undefined) this.#blocks.add(Number(block));
      }
    }
  }

  /** Processes identified only by the service's data directory: gateway, worker and PostgreSQL. */
  get own(): ListedProcess[] {
    return listProcesses().filter((entry) => this.#isOwn(entry));
  }

  /** Describes the leftovers of the service; empty if there are none. */
  leftovers(): string[] {
    const all = listProcesses();
    const processes = [
      ...[...this.#seen.values()].filter(isStillThere),
      ...all.filter((entry) => this.#isOwn(entry)),
      ...this.#strays(all),
    ];
    return [
      ...processes.map(({ pid, uid, command }) => `process ${pid} of uid ${uid}: ${command.slice(0, 120)}`),
      ...[...this.#blocks].flatMap(leftInBlock),
      ...this.#files(),
      ...leftInTemporary(this.#temporary),
    ];
  }

  /** Describes leftover files of sessions. */
  #files(): string[] {
    const slots = join(this.#dataDir, "slots");
    return existsSync(slots) ? readdirSync(slots).map((name) => `files of ${name}`) : [];
  }

  #isOwn({ command, directory, dataDir }: ListedProcess): boolean {
    return (
      command.includes(this.#dataDir) ||
      directory.startsWith(this.#dataDir) ||
      (dataDir ?? "").startsWith(this.#dataDir)
    );
  }

  /** Finds processes in a network namespace that the service has created and that no live worker uses. */
  #strays(all: readonly ListedProcess[]): ListedProcess[] {
    const host = all.find(({ pid }) => pid === process.pid)?.network;
    const made = new Set([...this.#seen.values()].map(({ network }) => network).filter((inode) => inode !== host));
    const parents = new Map(all.map((entry) => [entry.pid, entry]));
    // The kernel reuses inodes of namespaces, so the processes may belong to another worker. Some of them have only
    // init as parent, such as the crash handlers of full Chromium.
    const isOwned = ({ parent }: ListedProcess): boolean => {
      const found = parents.get(parent);
      return found !== undefined && found.pid !== 1 && (/\bnode\b/.test(found.command) || isOwned(found));
    };
    const inside = all.filter(({ network }) => network !== undefined && made.has(network));
    const reused = new Set(inside.filter(isOwned).map(({ network }) => network));
    return inside.filter(({ network }) => !reused.has(network));
  }
}

/** Describes leftover temporary files. An ordinary user's locks and record directories stay for the next worker. */
function leftInTemporary(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => !/^pilothouse-user-\d+(\/block-\d+(\.lock|\.scratch)?)?$/.test(path))
    .map((path) => `temporary file ${path}`);
}

/** Describes leftovers in a block of slots. Holds the block's lock meanwhile, so that no worker starts in the block. */
function leftInBlock(block: number): string[] {
  const path = join(locks, `block-${block}.lock`);
  const descriptor = openSync(path, "a");
  try {
    const { status } = spawnSync("flock", ["--exclusive", "--nonblock", "3"], {
      stdio: ["ignore", "ignore", "ignore", descriptor],
    });
    // The current holder of the lock has cleared the block. Our live processes are found above.
    if (status !== 0) return [];
    const from = firstUid + block * blockSize;
    const uids = Array.from({ length: blockSize }, (_, slot) => from + slot);
    const directories = uids
      .map((uid) => join(findScratch(true), `pilothouse-${uid}`))
      .filter((path) => existsSync(path));
    const records = readdirSync(join(locks, `block-${block}`)).map((name) => `record ${name} of block ${block}`);
    const processes = readdirSync("/proc")
      .map((name) => readProcess(Number(name)))
      .filter((entry) => entry !== undefined && entry.uid >= from && entry.uid < from + blockSize)
      .map((entry) => `process ${entry?.pid} of uid ${entry?.uid}`);
    return [...directories.map((directory) => `directory ${directory}`), ...records, ...processes];
  } finally {
    closeSync(descriptor);
  }
}

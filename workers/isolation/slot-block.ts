import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { confineCommand } from "./confinement.ts";
import { matchLaunches, readLaunchRecord } from "./launch-record.ts";
import { killProcesses, killUid, type ProcessEntry } from "./processes.ts";
import type { Slot } from "./slot.ts";
import { blockSize, maxBlocks } from "./uid-range.ts";

/** Maximum milliseconds for processes of a dead worker to end after SIGKILL. */
const leftoversMs = 10_000;

/** Timeout of rm(1) for a directory, in milliseconds. */
const removeMs = 30_000;

/**
 * A numbered set of isolation slots that one worker of the machine owns through a file lock. The lock ends with the
 * worker's process. If the worker can assign uids (see `findUidBase`), each slot has its own uid.
 */
export interface SlotBlock {
  readonly index: number;
  /** Returns the uid of a slot, or undefined if slots have no uids. */
  uidOf(slot: number): number | undefined;
  /** Returns the directory of a slot, writable by its browser. */
  directoryOf(slot: number): string;
  /** Returns the directory for uploads and downloads of the slot's session. */
  storageOf(slot: number): string;
  /** Returns the path of a slot's launch record, which its browser cannot write. */
  recordOf(slot: number): string;
  release(): void;
}

export interface BlockOptions {
  /** First slot uid of this machine, if slots have uids. */
  uidBase: number | undefined;
  /** Parent of the slot directories. */
  scratch: string;
  /** Parent of the session file directories, searchable by all users. Default: the parent of the slot directories. */
  storage?: string | undefined;
  log: Log;
  recoverProfile?: RecoverProfile | undefined;
}

interface BlockLocation {
  readonly base: string;
  readonly index: number;
  readonly uidBase: number | undefined;
  readonly scratch: string;
  readonly storage: string | undefined;
  release(): void;
}

/** Saves the profile that a dead worker's session left in a slot. Called after the session's processes have ended. */
export type RecoverProfile = (
  profile: { path: string; uid: number | undefined },
  launchRecord: string,
) => Promise<void>;

/**
 * Locks the first free block that can be cleared. Also clears all other free blocks that workers of this machine have
 * used. Processes are killed and files removed only in blocks that this worker has locked. Rejects if no block can be
 * locked and cleared.
 */
export async function acquireBlock({
  uidBase,
  scratch,
  storage,
  log,
  recoverProfile,
}: BlockOptions): Promise<SlotBlock> {
  // Uids are shared by all workers of the machine, so their locks must not depend on a worker's scratch directory.
  const base = uidBase !== undefined ? "/run/pilothouse" : join(scratch, `pilothouse-user-${process.getuid?.() ?? 0}`);
  makeOwnDirectory(base);
  let acquired: SlotBlock | undefined;
  for (let index = 0; index < maxBlocks; index += 1) {
    const known = readdirSync(base).includes(`block-${index}.lock`);
    if (acquired && !known) continue;
    const release = lockBlock(base, index);
    if (!release) continue;
    const location = { base, index, uidBase, release };
    const used = makeBlock({ ...location, ...(readRoots(base, index) ?? { scratch, storage }) });
    if ((await clearBlock(used, log, recoverProfile)) && !acquired) {
      writeRoots(base, index, { scratch, storage });
      acquired = makeBlock({ ...location, scratch, storage });
    } else release();
  }
  if (!acquired)
    throw new Error(`all ${maxBlocks} blocks of slots in ${base} are taken by other workers or cannot be cleared`);
  return acquired;
}

/** Locks a block. Returns the release function, or undefined if another worker holds the block. */
function lockBlock(base: string, index: number): (() => void) | undefined {
  const descriptor = openSync(join(base, `block-${index}.lock`), "a", 0o600);
  // The lock belongs to the open file description, which flock(1) inherits. The lock remains when flock(1) exits. It
  // ends when this process closes the file or ends.
  const { status, error } = spawnSync("flock", ["--exclusive", "--nonblock", "3"], {
    stdio: ["ignore", "ignore", "ignore", descriptor],
  });
  if (status !== 0) {
    closeSync(descriptor);
    if (error)
      throw new Error("flock(1) is needed to share a machine between workers (package util-linux)", { cause: error });
    return undefined;
  }
  makeOwnDirectory(join(base, `block-${index}`));
  return () => closeSync(descriptor);
}

function makeBlock({ base, index, uidBase, scratch, storage, release }: BlockLocation): SlotBlock {
  const uidOf = (slot: number) => (uidBase === undefined ? undefined : uidBase + index * blockSize + slot);
  const root = uidBase === undefined ? base : scratch;
  const nameOf = (slot: number) =>
    uidBase === undefined ? `block-${index}-slot-${slot}` : `pilothouse-${uidOf(slot)}`;
  return {
    index,
    uidOf,
    directoryOf: (slot) => join(root, nameOf(slot)),
    storageOf: (slot) => join(storage ?? root, `${nameOf(slot)}-files`),
    recordOf: (slot) => join(base, `block-${index}`, `${slot}.launch`),
    release,
  };
}

/** Parent directories of a block's slots. */
type Roots = Pick<BlockLocation, "scratch" | "storage">;

/**
 * Reads the parent directories used by the block's last worker, one per line. That worker's configuration may have
 * differed. Returns undefined if no worker has used the block.
 */
function readRoots(base: string, index: number): Roots | undefined {
  try {
    const [scratch = "", storage] = readFileSync(join(base, `block-${index}.scratch`), "utf8").split("\n");
    return { scratch, storage: storage || undefined };
  } catch {
    return undefined;
  }
}

function writeRoots(base: string, index: number, { scratch, storage = "" }: Roots): void {
  writeFileSync(join(base, `block-${index}.scratch`), `${scratch}\n${storage}`, { mode: 0o600 });
}

async function clearBlock(
  block: SlotBlock,
  log: Log,
  recoverProfile: RecoverProfile = async () => undefined,
): Promise<boolean> {
  const slots = Array.from({ length: blockSize }, (_, slot) => slot);
  for (const slot of slots) {
    const uid = block.uidOf(slot);
    if (uid === undefined || !existsSync(block.directoryOf(slot))) continue;
    await killUid(confineCommand(["unshare", "--net"], uid, "namespaces"));
  }
  const left = await killProcesses(matchSlots(block, slots), leftoversMs);
  if (left.length > 0) {
    log.error({ block: block.index, pids: left.map(({ pid }) => pid) }, "failed to kill processes of a dead worker");
    return false;
  }
  try {
    const used = slots.filter((slot) => existsSync(block.directoryOf(slot)));
    await Promise.all(
      used.map((slot) => {
        const path = profileDirectory(block.directoryOf(slot));
        return recoverProfile({ path, uid: block.uidOf(slot) }, block.recordOf(slot));
      }),
    );
    for (const slot of slots) {
      const uid = block.uidOf(slot);
      removeSlotDirectories({ directory: block.directoryOf(slot), storage: block.storageOf(slot), uid });
      rmSync(block.recordOf(slot), { force: true });
      removeProfileRecord(block.recordOf(slot));
    }
  } catch (error) {
    log.warn({ block: block.index, err: error }, "failed to clear a slot block; skipping it");
    return false;
  }
  return true;
}

/** Creates a matcher for the processes of slots: by uid, or by launch records if slots have no uids. */
export function matchSlots(block: SlotBlock, slots: readonly number[]): (entry: ProcessEntry) => boolean {
  const uids = new Set(slots.map((slot) => block.uidOf(slot)).filter((uid) => uid !== undefined));
  if (uids.size > 0) return ({ uid }) => uids.has(uid);
  const records = slots.map((slot) => readLaunchRecord(block.recordOf(slot))).filter((record) => record !== undefined);
  return matchLaunches(records, new Set(slots.map((slot) => block.directoryOf(slot))));
}

/** Returns the path of a slot's profile record, next to its launch record. */
export function profileRecordOf(launchRecord: string): string {
  return launchRecord.replace(/\.launch$/, ".profile");
}

/**
 * Removes the profile record. Otherwise, after a crash of the worker, the files of the slot's next session would be
 * saved as this profile.
 */
export function removeProfileRecord(launchRecord: string): void {
  const path = profileRecordOf(launchRecord);
  for (const each of [path, `${path}.new`]) rmSync(each, { force: true });
}

/** Mode of directories that the browser can write to: group-writable and sticky. */
const sharedMode = 0o1770;
/** Mode of directories that the browser can only read. */
const readOnlyMode = 0o750;

/** Directories of a slot, and the uid of the browser that uses them. */
export type SlotDirectories = Pick<Slot, "directory" | "storage" | "uid">;

/**
 * Recreates a slot's directories for temporary files, profile, downloads and session files. If the slot has a uid, the
 * worker owns the directories, and their group is the slot's. All but the directory of session files are group-writable
 * and sticky. The browser can then write to a directory but cannot replace it by a link through which the worker would
 * read or remove its own files.
 */
export function makeSlotDirectories({ directory, storage, uid }: SlotDirectories): void {
  removeSlotDirectories({ directory, storage, uid });
  const make = (path: string, mode: number) => {
    mkdirSync(path, { mode: 0o700 });
    if (uid === undefined) return;
    chownSync(path, process.getuid?.() ?? 0, uid);
    chmodSync(path, mode);
  };
  make(directory, sharedMode);
  make(temporaryDirectory(directory), sharedMode);
  make(profileDirectory(directory), sharedMode);
  make(storage, sharedMode);
  make(artifactsDirectory(storage), sharedMode);
  make(filesDirectory(storage), readOnlyMode);
}

/** Returns the directory for temporary files of a slot's browser. */
export function temporaryDirectory(directory: string): string {
  return join(directory, "tmp");
}

export function profileDirectory(directory: string): string {
  return join(directory, "profile");
}

/** Returns the directory of session files, read-only for the browser. */
export function filesDirectory(storage: string): string {
  return join(storage, "files");
}

/** Returns the download directory. Its content is untrusted and may include links. */
export function artifactsDirectory(storage: string): string {
  return join(storage, "artifacts");
}

export function removeSlotDirectories({ directory, storage, uid }: SlotDirectories): void {
  for (const path of [storage, directory]) removeSlotDirectory(path, uid);
}

/**
 * Removes a directory of a slot, if present. Throws if the path is not a directory, or belongs neither to the slot's
 * uid nor to the worker. In a world-writable parent, any user can create this name. During a removal by root, the owner
 * could then replace directories by links.
 */
function removeSlotDirectory(directory: string, uid: number | undefined): void {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isDirectory() || (found.uid !== uid && found.uid !== process.getuid?.())) {
    throw new Error(`expected ${directory} to belong to a slot, but it belongs to uid ${found.uid}`);
  }
  try {
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // rm(1) descends step by step, so paths may exceed the kernel's limit. chmod(1) restores missing permissions.
    const { status, stderr } = spawnSync("sh", ["-c", 'chmod -R u+rwx -- "$0"; exec rm -rf -- "$0"', directory], {
      encoding: "utf8",
      timeout: removeMs,
    });
    if (status !== 0) throw new Error(`failed to remove ${directory}: ${stderr.trim().slice(-300)}`);
  }
}

/**
 * Creates a directory that only this user can write to, if missing. Throws if the path is not a directory, or if
 * another user owns it or can write to it.
 */
function makeOwnDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new Error(`expected ${path} to be a directory that belongs to this user and that no other user can write to`);
  }
}

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

/** How long what a dead worker left may take to die. */
const leftoversMs = 10_000;

/** How long removing a directory by rm(1) may take. */
const removeMs = 30_000;

/**
 * A numbered set of slots that belongs to one worker of the machine, held by a file lock that ends with its process.
 * Where the worker is root each slot has a uid of its own.
 */
export interface SlotBlock {
  readonly index: number;
  /** The uid of a slot, where this worker may give it one. */
  uidOf(slot: number): number | undefined;
  /** The directory of a slot, which its browser may write. */
  directoryOf(slot: number): string;
  /** The directory of what its session's user puts there and downloads. */
  storageOf(slot: number): string;
  /** Where a slot's launch notes its process, which its browser may not write. */
  recordOf(slot: number): string;
  /** Lets another worker take the block. */
  release(): void;
}

/** Where blocks are kept. */
export interface BlockOptions {
  /** The first uid for slots of this machine, where slots have uids of their own. */
  uidBase: number | undefined;
  /** Where the directories of slots lie. */
  scratch: string;
  /** Where the directories of their sessions' files lie, which others may pass; beside them unless given. */
  storage?: string | undefined;
  log: Log;
  salvage?: Salvage | undefined;
}

interface BlockPlace {
  readonly base: string;
  readonly index: number;
  readonly uidBase: number | undefined;
  readonly scratch: string;
  readonly storage: string | undefined;
  release(): void;
}

/** Saves what a dead worker's session has left in a slot before it is removed; its processes have ended. */
export type Salvage = (profile: { path: string; uid: number | undefined }, launchRecord: string) => Promise<void>;

/**
 * Takes the first free block, and clears every free one of what dead workers left.
 * Nothing is ever killed or removed but in a block whose lock is held.
 */
export async function takeBlock({ uidBase, scratch, storage, log, salvage }: BlockOptions): Promise<SlotBlock> {
  // Uids are the machine's, whatever the scratch directory of a worker is.
  const base = uidBase !== undefined ? "/run/pilothouse" : join(scratch, `pilothouse-user-${process.getuid?.() ?? 0}`);
  makeOwnDirectory(base);
  let taken: SlotBlock | undefined;
  for (let index = 0; index < maxBlocks; index += 1) {
    const known = readdirSync(base).includes(`block-${index}.lock`);
    if (taken && !known) continue;
    const release = lockBlock(base, index);
    if (!release) continue;
    const place = { base, index, uidBase, release };
    const used = makeBlock({ ...place, ...(notedRoots(base, index) ?? { scratch, storage }) });
    if ((await clearBlock(used, log, salvage)) && !taken) {
      noteRoots(base, index, { scratch, storage });
      taken = makeBlock({ ...place, scratch, storage });
    } else release();
  }
  if (!taken) throw new Error(`all ${maxBlocks} blocks of slots in ${base} are taken by other workers`);
  return taken;
}

/** Locks a block; gives what lets it go, or undefined when another worker has it. */
function lockBlock(base: string, index: number): (() => void) | undefined {
  const descriptor = openSync(join(base, `block-${index}.lock`), "a", 0o600);
  // A lock belongs to the open file, which flock(1) shares with us: it stays when flock ends and goes when we end.
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

function makeBlock({ base, index, uidBase, scratch, storage, release }: BlockPlace): SlotBlock {
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

/** Where the directories of a block's slots lie. */
type Roots = Pick<BlockPlace, "scratch" | "storage">;

/** Reads where the last worker of a block had them, a line each: it may have been told of other places. */
function notedRoots(base: string, index: number): Roots | undefined {
  try {
    const [scratch = "", storage] = readFileSync(join(base, `block-${index}.scratch`), "utf8").split("\n");
    return { scratch, storage: storage || undefined };
  } catch {
    return undefined;
  }
}

function noteRoots(base: string, index: number, { scratch, storage = "" }: Roots): void {
  writeFileSync(join(base, `block-${index}.scratch`), `${scratch}\n${storage}`, { mode: 0o600 });
}

async function clearBlock(block: SlotBlock, log: Log, salvage: Salvage = async () => undefined): Promise<boolean> {
  const slots = Array.from({ length: blockSize }, (_, slot) => slot);
  for (const slot of slots) {
    const uid = block.uidOf(slot);
    if (uid === undefined || !existsSync(block.directoryOf(slot))) continue;
    await killUid(confineCommand(["unshare", "--net"], uid, "namespaces"));
  }
  const left = await killProcesses(matchSlots(block, slots), leftoversMs);
  if (left.length > 0) {
    log.error({ block: block.index, pids: left.map(({ pid }) => pid) }, "processes of a dead worker cannot be killed");
    return false;
  }
  try {
    const used = slots.filter((slot) => existsSync(block.directoryOf(slot)));
    await Promise.all(
      used.map((slot) => {
        const path = profileDirectory(block.directoryOf(slot));
        return salvage({ path, uid: block.uidOf(slot) }, block.recordOf(slot));
      }),
    );
    for (const slot of slots) {
      const uid = block.uidOf(slot);
      removeSlotDirectories({ directory: block.directoryOf(slot), storage: block.storageOf(slot), uid });
      rmSync(block.recordOf(slot), { force: true });
      removeProfileRecord(block.recordOf(slot));
    }
  } catch (error) {
    log.warn({ block: block.index, err: error }, "a block of slots is left alone");
    return false;
  }
  return true;
}

/** Makes a test for the processes of slots: those of their uids, or, where slots have none, those that launches left. */
export function matchSlots(block: SlotBlock, slots: readonly number[]): (entry: ProcessEntry) => boolean {
  const uids = new Set(slots.map((slot) => block.uidOf(slot)).filter((uid) => uid !== undefined));
  if (uids.size > 0) return ({ uid }) => uids.has(uid);
  const records = slots.map((slot) => readLaunchRecord(block.recordOf(slot))).filter((record) => record !== undefined);
  return matchLaunches(records, new Set(slots.map((slot) => block.directoryOf(slot))));
}

/** Where it is noted which profile a slot's browser has, beside the record of its launch. */
export function profileRecordOf(launchRecord: string): string {
  return launchRecord.replace(/\.launch$/, ".profile");
}

/** Removes that note, before another session's files lie in the slot: they must not be taken for those of the profile. */
export function removeProfileRecord(launchRecord: string): void {
  const path = profileRecordOf(launchRecord);
  for (const each of [path, `${path}.new`]) rmSync(each, { force: true });
}

/** What a slot's browser may do in a directory of ours: write in it, without exchanging what is ours; or read alone. */
const sharedMode = 0o1770;
const readOnlyMode = 0o750;

/** What a slot has of the file system. */
export type SlotDirectories = Pick<Slot, "directory" | "storage" | "uid">;

/**
 * Makes a slot's directories anew, for its browser alone, with places for temporary files, a profile, downloads and the
 * session's files. Where the slot has a uid these belong to us, sticky, and to its group: the browser writes in them, and
 * cannot put a link in the place of one, through which we would read or remove something of ours.
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

/** Where a slot's browser puts temporary files. */
export function temporaryDirectory(directory: string): string {
  return join(directory, "tmp");
}

/** Where a slot's full Chromium keeps its profile. */
export function profileDirectory(directory: string): string {
  return join(directory, "profile");
}

/** Where the files of a slot's session are, which its browser may read alone. */
export function filesDirectory(storage: string): string {
  return join(storage, "files");
}

/** Where a slot's browser puts downloads; what lies there is the page's word, links included. */
export function artifactsDirectory(storage: string): string {
  return join(storage, "artifacts");
}

/** Removes what a slot has of the file system. */
export function removeSlotDirectories({ directory, storage, uid }: SlotDirectories): void {
  for (const path of [storage, directory]) removeSlotDirectory(path, uid);
}

/**
 * Removes a directory of a slot when it is ours to remove. In a directory that anyone may write a stranger could have made
 * one of that name; removing it as root could then be led astray by links that change meanwhile.
 */
function removeSlotDirectory(directory: string, uid: number | undefined): void {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isDirectory() || (found.uid !== uid && found.uid !== process.getuid?.())) {
    throw new Error(`${directory} belongs to uid ${found.uid} and not to a slot`);
  }
  try {
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // Paths longer than the kernel takes, or directories that their owner may not enter: rm(1) goes down step by step.
    const { status, stderr } = spawnSync("sh", ["-c", 'chmod -R u+rwx -- "$0"; exec rm -rf -- "$0"', directory], {
      encoding: "utf8",
      timeout: removeMs,
    });
    if (status !== 0) throw new Error(`${directory} cannot be removed: ${stderr.trim().slice(-300)}`);
  }
}

/** Makes a directory that nobody else can write, or throws where somebody else has made it. */
function makeOwnDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new Error(`${path} must be a directory of this user's that nobody else can write`);
  }
}

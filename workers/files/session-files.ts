import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  renameSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { FileSource, type SessionFile, SessionFileSchema } from "../../src/gen/pilothouse/v1/file_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { cleanFileName, fileNameFault, freeFileName } from "../../src/platform/file-name.ts";
import type { Slot } from "../isolation/slot.ts";
import { filesDirectory } from "../isolation/slot-block.ts";
import { fileBounds, inMebibytes, type PendingWrite } from "./file-bounds.ts";
import type { FileUpload, OpenFile } from "./file-transfer.ts";

/** Mode of session files: owned by the worker, readable by the browser's group. */
const readableByGroup = 0o640;

/** Flags of `open`: follow no links, and do not block on a pipe without a writer. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A file with its position in the order of changes. */
export interface KeptFile {
  readonly file: SessionFile;
  readonly position: bigint;
}

/**
 * The files of a session. The index is in memory. If the slot has a uid, the browser can read but not write the
 * directory on disk, so that no name in the directory can become a link.
 */
export class SessionFiles {
  readonly #slot: Pick<Slot, "storage" | "uid">;
  readonly #kept = new Map<string, KeptFile>();
  readonly #pendingWrites = new Set<PendingWrite>();
  #changes = 0n;

  constructor(slot: Pick<Slot, "storage" | "uid">) {
    this.#slot = slot;
  }

  /** All files, most recently changed first. */
  get all(): readonly KeptFile[] {
    return [...this.#kept.values()].sort((a, b) => Number(b.position - a.position));
  }

  /** Whether the session has fewer files than the maximum. */
  get hasRoom(): boolean {
    return this.#kept.size < fileBounds.files;
  }

  /** Whether the files and the writes in progress exceed the session's limit. */
  get isOver(): boolean {
    return this.#bytes(...this.#pendingWrites) > fileBounds.sessionBytes;
  }

  /** Returns the path of a file for the browser to read, or undefined if the name is unknown. */
  pathOf(name: string): string | undefined {
    return this.#kept.has(name) ? this.#pathFor(name) : undefined;
  }

  /** Registers a write in progress, which counts towards the limits until disposed of. */
  beginWrite(): PendingWrite & Disposable {
    const pending = { bytes: 0, [Symbol.dispose]: () => void this.#pendingWrites.delete(pending) };
    this.#pendingWrites.add(pending);
    return pending;
  }

  /** Stores an upload. An incomplete upload leaves no file. A person's upload never replaces an existing file. */
  async put(
    { context, name: wanted, data, announcedBytes, source }: FileUpload,
    signal: AbortSignal,
  ): Promise<{ file: SessionFile; created: boolean }> {
    const isPersons = context.clientId !== "";
    if (!isPersons) assertName(wanted);
    this.#assertRoom(announcedBytes, { bytes: announcedBytes });
    // The incoming file is outside the files directory, so that names do not collide. The worker owns the file, so the
    // browser cannot replace it.
    const path = join(this.#slot.storage, `incoming-${randomUUID()}`);
    using pending = this.beginWrite();
    try {
      await this.#receive(path, data, pending, signal);
      const name = isPersons ? this.#freeName(wanted) : wanted;
      const created = !this.#kept.has(name);
      if (created && !this.hasRoom) throw tooMany();
      renameSync(path, this.#pathFor(name));
      return { file: this.#keep(name, pending.bytes, { source }), created };
    } catch (thrown) {
      rmSync(path, { force: true });
      throw asDiskFailure(thrown);
    }
  }

  /**
   * Moves a file written by the browser into the session's files, under a free name derived from the name that the page
   * chose. If the file is not a regular file of the browser or exceeds a limit, leaves it in place and returns
   * undefined. Throws if the file is missing.
   */
  take(
    path: string,
    { fileName, guid }: { readonly fileName: string; readonly guid: string },
  ): SessionFile | undefined {
    if (!this.hasRoom) return undefined;
    const name = this.#freeName(fileName);
    const movedTo = this.#pathFor(name);
    // The file is moved before the checks: the browser cannot replace files in this directory.
    renameSync(path, movedTo);
    const bytes = this.#takeOwnership(movedTo);
    if (bytes !== undefined && this.#bytes({ bytes }) <= fileBounds.sessionBytes && bytes <= fileBounds.fileBytes) {
      return this.#keep(name, bytes, { source: FileSource.DOWNLOAD, guid });
    }
    renameSync(movedTo, path);
    return undefined;
  }

  /** Opens a file. People may open only files that a page downloaded. */
  async open(name: string, isForPerson = false): Promise<OpenFile> {
    const { file } = this.#find(name);
    if (isForPerson && file.source !== FileSource.DOWNLOAD) throw noFile(name);
    const handle = await open(this.#pathFor(name), readFlags);
    return { file, handle, [Symbol.asyncDispose]: () => handle.close() };
  }

  delete(name: string): void {
    this.#find(name);
    unlinkSync(this.#pathFor(name));
    this.#kept.delete(name);
  }

  #find(name: string): KeptFile {
    assertName(name);
    const kept = this.#kept.get(name);
    if (!kept) throw noFile(name);
    return kept;
  }

  /** Returns an unused name derived from a name that a page or a person chose. */
  #freeName(name: string): string {
    return freeFileName(cleanFileName(name), (taken) => this.#kept.has(taken));
  }

  #pathFor(name: string): string {
    return join(filesDirectory(this.#slot.storage), name);
  }

  #keep(name: string, bytes: number, origin: Pick<SessionFile, "source" | "guid">): SessionFile {
    this.#changes += 1n;
    const file = create(SessionFileSchema, { name, bytes: BigInt(bytes), ...origin, modifiedAt: timestampNow() });
    this.#kept.set(name, { file, position: this.#changes });
    return file;
  }

  #bytes(...others: readonly PendingWrite[]): number {
    const kept = this.#kept.values().reduce((sum, { file }) => sum + Number(file.bytes), 0);
    return others.reduce((sum, { bytes }) => sum + bytes, kept);
  }

  /** Throws if a file or the sum of all files and writes in progress exceeds its limit. */
  #assertRoom(fileBytes: number, ...others: readonly PendingWrite[]): void {
    if (fileBytes > fileBounds.fileBytes) throw tooLarge();
    if (this.#bytes(...this.#pendingWrites, ...others) > fileBounds.sessionBytes) throw tooMuch();
  }

  async #receive(
    path: string,
    data: AsyncIterable<Uint8Array>,
    pending: PendingWrite,
    signal: AbortSignal,
  ): Promise<void> {
    await using file = await open(path, "wx", 0o600);
    for await (const part of data) {
      signal.throwIfAborted();
      pending.bytes += part.length;
      this.#assertRoom(pending.bytes);
      await file.writeFile(part);
    }
    signal.throwIfAborted();
    const { uid } = this.#slot;
    if (uid === undefined) return;
    await file.chown(process.getuid?.() ?? 0, uid);
    await file.chmod(readableByGroup);
  }

  /** Takes ownership of a file and returns its size. Returns undefined unless it is a regular file of the browser. */
  #takeOwnership(path: string): number | undefined {
    const { uid } = this.#slot;
    let descriptor: number | undefined;
    try {
      descriptor = openSync(path, readFlags);
      const found = fstatSync(descriptor);
      if (!found.isFile() || (uid !== undefined && found.uid !== uid)) return undefined;
      if (uid !== undefined) {
        fchownSync(descriptor, process.getuid?.() ?? 0, uid);
        fchmodSync(descriptor, readableByGroup);
      }
      return found.size;
    } catch {
      return undefined;
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
}

function assertName(name: string): void {
  const fault = fileNameFault(name);
  if (fault !== undefined) throw failFields("validation-failed", { name: fault });
}

function noFile(name: string): Error {
  return fail("not-found", {}, { detail: `the session has no file ${JSON.stringify(name)}` });
}

function tooLarge(): Error {
  return fail("conflict", {}, { detail: `the file exceeds the maximum of ${inMebibytes(fileBounds.fileBytes)}` });
}

function tooMuch(): Error {
  const detail = `the session's files would exceed ${inMebibytes(fileBounds.sessionBytes)} together: delete files first`;
  return fail("conflict", {}, { detail });
}

function tooMany(): Error {
  return fail("conflict", {}, { detail: `the session has ${fileBounds.files} files, the maximum: delete files first` });
}

/** Converts a disk-full error to a failure. Returns other errors unchanged. */
function asDiskFailure(thrown: unknown): unknown {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  if (code !== "ENOSPC" && code !== "EDQUOT") return thrown;
  return fail("driver-error", {}, { detail: "the disk of the browser's machine is full", cause: thrown });
}

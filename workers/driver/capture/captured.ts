import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "../../../src/platform/errors.ts";
import { chunkBytes, readChunks } from "../../files/file-chunks.ts";
import type { ImageSize } from "./image-size.ts";

/** Maximum bytes of a capture. While a text is not encoded yet, also its maximum number of characters. */
export const maxBytes = 64 * 1024 * 1024;

/**
 * Maximum bytes of a capture that is kept in memory. Larger captures are stored in a file, since their reader may be
 * slow.
 */
const memoryBytes = 8 * 1024 * 1024;

/** Bytes of a capture that is not stored yet, in the parts in which they arrived. */
export interface RawCapture {
  readonly contentType: string;
  readonly parts: readonly Buffer[];
  readonly size?: ImageSize | undefined;
}

/** A finished capture awaiting its reader, in memory or in an unlinked file. */
export class Captured {
  readonly contentType: string;
  readonly size: ImageSize | undefined;
  readonly bytes: number;
  readonly #parts: readonly Buffer[];
  readonly #file: FileHandle | undefined;

  private constructor(raw: RawCapture, bytes: number, file: FileHandle | undefined) {
    this.contentType = raw.contentType;
    this.size = raw.size;
    this.bytes = bytes;
    this.#parts = file ? [] : raw.parts;
    this.#file = file;
  }

  /** Stores a capture of more than `memoryBytes` in a file in `directory`. Keeps a smaller capture in memory. */
  static async keep(raw: RawCapture, directory: string): Promise<Captured> {
    const bytes = raw.parts.reduce((sum, part) => sum + part.length, 0);
    if (bytes > maxBytes) throw captureTooLarge(bytes);
    return new Captured(raw, bytes, bytes > memoryBytes ? await writeUnnamed(raw.parts, directory) : undefined);
  }

  /** Yields the bytes in chunks of at most 256 KiB. */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (!this.#file) return yield* sliced(this.#parts);
    yield* readChunks(this.#file, this.bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
  }
}

/** Creates the failure for a capture above `maxBytes`. */
export function captureTooLarge(bytes: number): Error {
  const detail = `expected a capture of at most ${maxBytes} bytes, got ${bytes}: capture a smaller part, or use a smaller format`;
  return fail("driver-error", { capture_bytes: bytes }, { detail });
}

/**
 * Writes a file that is unlinked at once, so that the file disappears when the handle closes, and the browser cannot
 * open it.
 */
async function writeUnnamed(parts: readonly Buffer[], directory: string): Promise<FileHandle> {
  const path = join(directory, `capture-${crypto.randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  try {
    await unlink(path);
    for (const part of parts) await file.writeFile(part);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function* sliced(parts: readonly Buffer[]): Generator<Uint8Array, void, undefined> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += chunkBytes) yield part.subarray(at, at + chunkBytes);
  }
}

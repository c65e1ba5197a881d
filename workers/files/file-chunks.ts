import type { FileHandle } from "node:fs/promises";

/** Bytes per chunk of a sent file. */
export const chunkBytes = 256 * 1024;

/** Yields the first `bytes` of a file in chunks of at most 256 KiB. Throws if the file is shorter. */
export async function* readChunks(file: FileHandle, bytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes; ) {
    const length = Math.min(chunkBytes, bytes - at);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
    if (bytesRead === 0) throw new Error("file is shorter than its recorded size");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

import type { FileHandle } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import {
  type CommandContext,
  type FileChunk,
  FileChunkSchema,
  type PutFileCommand,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { FileSource, type SessionFile } from "../../src/gen/pilothouse/v1/file_pb.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { readChunks } from "./file-chunks.ts";

/** A file being uploaded to a session. */
export interface FileUpload {
  readonly context: CommandContext;
  readonly name: string;
  /** Size from the upload's header. 0 if unknown. */
  readonly announcedBytes: number;
  readonly source: FileSource;
  /** Throws if the call ends before the file is complete. */
  readonly data: AsyncIterable<Uint8Array>;
}

/** Reads the header message of an upload and returns the upload with its data stream. */
export async function openUpload(commands: AsyncIterable<PutFileCommand>): Promise<FileUpload> {
  const messages = commands[Symbol.asyncIterator]();
  const { value: head, done } = await messages.next();
  if (done || !head.context) throw failFields("validation-failed", { context: "is required" });
  const { context, name, announcedBytes, source } = head;
  return {
    context,
    name,
    announcedBytes: Number(announcedBytes),
    data: dataOf(head, messages),
    source: source || FileSource.UPLOAD,
  };
}

async function* dataOf(head: PutFileCommand, messages: AsyncIterator<PutFileCommand>): AsyncGenerator<Uint8Array> {
  for (let message = head; ; ) {
    if (message.data.length > 0) yield message.data;
    if (message.last) return;
    const next = await messages.next();
    if (next.done) throw fail("bad-request", {}, { detail: "the upload ended before its last part" });
    message = next.value;
  }
}

/** Yields a file as messages of the fleet link. Throws if the signal aborts. */
export async function* sendFile({ file, handle }: OpenFile, signal: AbortSignal): AsyncGenerator<FileChunk> {
  yield create(FileChunkSchema, { file });
  for await (const data of readChunks(handle, Number(file.bytes))) {
    signal.throwIfAborted();
    yield create(FileChunkSchema, { data });
  }
}

/** An open file. Its content stays the same even if the name is replaced or deleted. */
export interface OpenFile extends AsyncDisposable {
  readonly file: SessionFile;
  readonly handle: FileHandle;
}

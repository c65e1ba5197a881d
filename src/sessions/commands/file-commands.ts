import { create } from "@bufbuild/protobuf";
import {
  type CommandContext,
  type FileChunk,
  type ListedFile,
  type PutFileAnswer,
  type PutFileCommand,
  PutFileCommandSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { FileSource } from "../../gen/pilothouse/v1/file_pb.ts";
import { fleetCommands } from "../../platform/grpc/fleet-commands.ts";
import type { SessionCaller } from "./session-caller.ts";
import type { WorkerCommands } from "./worker-commands.ts";

/** Bytes per part of a file transfer. */
const chunkBytes = 256 * 1024;

/** A file to upload to a session. */
export interface NewFile {
  readonly name: string;
  readonly data: AsyncIterable<Uint8Array>;
  /** Expected bytes, so that oversized files are rejected early; 0 if unknown. */
  readonly announcedBytes: bigint;
  /** Origin of the file, if it is not an upload. */
  readonly source?: FileSource;
}

/** File commands of the session `id`. */
export interface FileCommands {
  /** Uploads a file. Errors of `data` are rethrown, and the file is not stored. */
  put(caller: SessionCaller, id: string, file: NewFile): Promise<PutFileAnswer>;
  /** Reads a file. Throws if the session ends meanwhile. */
  read(caller: SessionCaller, id: string, name: string): AsyncIterable<FileChunk>;
  delete(caller: SessionCaller, id: string, name: string): Promise<void>;
  /**
   * Lists files, last changed first. `before` is the position of the last file of the previous list page, or 0 for the
   * first list page.
   */
  list(caller: SessionCaller, id: string, page: { limit: number; before: bigint }): Promise<readonly ListedFile[]>;
}

export function createFileCommands(commands: WorkerCommands): FileCommands {
  const { putFile: method } = WorkerService.method;
  return {
    put: (caller, id, file) => commands.send({ caller, id, method, build: (context) => upload(context, file) }),
    read: (caller, id, name) => commands.stream(caller, id, fleetCommands.getFile, { id, name }, { isEndless: true }),
    async delete(caller, id, name) {
      await commands.run(caller, id, fleetCommands.deleteFile, { id, name });
    },
    list: async (caller, id, page) => (await commands.run(caller, id, fleetCommands.listFiles, page)).files,
  };
}

/** Yields the messages of an upload. `last` marks the file as complete. */
async function* upload(
  context: CommandContext,
  { name, data, announcedBytes, source }: NewFile,
): AsyncGenerator<PutFileCommand> {
  yield create(PutFileCommandSchema, { context, name, announcedBytes, ...(source !== undefined && { source }) });
  for await (const part of data) {
    for (let at = 0; at < part.length; at += chunkBytes) {
      yield create(PutFileCommandSchema, { data: part.subarray(at, at + chunkBytes) });
    }
  }
  yield create(PutFileCommandSchema, { last: true });
}

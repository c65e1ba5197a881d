import { create } from "@bufbuild/protobuf";
import {
  type CommandContext,
  type FileChunk,
  FileCommandSchema,
  type ListedFile,
  ListFilesCommandSchema,
  type PutFileAnswer,
  type PutFileCommand,
  PutFileCommandSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { FileSource } from "../../gen/pilothouse/v1/file_pb.ts";
import type { SessionCaller } from "./session-caller.ts";
import type { WorkerCommands } from "./worker-commands.ts";

/** Size of the parts in which files are sent. */
const chunkBytes = 256 * 1024;

/** A file on its way to its session. */
export interface NewFile {
  readonly name: string;
  readonly data: AsyncIterable<Uint8Array>;
  /** How many bytes will come, where that is known: too many are refused before they come. */
  readonly announcedBytes: bigint;
  /** Where it comes from, if it is no upload. */
  readonly source?: FileSource;
}

/** What is done with the files of a session. `id` is the session's. */
export interface FileCommands {
  /** Puts a file. What its data throws is thrown, and nothing is put. */
  put(caller: SessionCaller, id: string, file: NewFile): Promise<PutFileAnswer>;
  /** Reads a file, for as long as its session lasts. */
  read(caller: SessionCaller, id: string, name: string): AsyncIterable<FileChunk>;
  delete(caller: SessionCaller, id: string, name: string): Promise<void>;
  /** Lists files, those that changed last first; `before` is the position of the last one of the page before. */
  list(caller: SessionCaller, id: string, page: { limit: number; before: bigint }): Promise<readonly ListedFile[]>;
}

/** Makes the commands: each is one line of translation. */
export function createFileCommands(commands: WorkerCommands): FileCommands {
  const { method } = WorkerService;
  return {
    put: (caller, id, file) =>
      commands.send({ caller, id, method: method.putFile, build: (context) => upload(context, file) }),
    read: (caller, id, name) =>
      commands.stream({
        caller,
        id,
        method: method.getFile,
        isEndless: true,
        build: (context) => create(FileCommandSchema, { context, name }),
      }),
    async delete(caller, id, name) {
      const build = (context: CommandContext) => create(FileCommandSchema, { context, name });
      await commands.run({ caller, id, method: method.deleteFile, build });
    },
    async list(caller, id, page) {
      const build = (context: CommandContext) => create(ListFilesCommandSchema, { context, ...page });
      return (await commands.run({ caller, id, method: method.listFiles, build })).files;
    },
  };
}

/** The messages of an upload: only the last one says that the file is whole. */
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

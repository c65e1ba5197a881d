import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { FileChunk } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { asFailure } from "../../platform/errors.ts";
import type { FileCommands } from "../commands/file-commands.ts";
import type { SessionCaller } from "../commands/session-caller.ts";
import { type ZipEntry, zipStream } from "./zip-stream.ts";

/** Maximum number of files of a session. */
const maxFiles = 1_000;

const contentType = "application/zip";

/** Streams all files of a session as a ZIP archive. */
export async function* answerArchive(
  files: FileCommands,
  caller: SessionCaller,
  id: string,
): AsyncGenerator<HttpBody, void, undefined> {
  const listed = await files.list(caller, id, { limit: maxFiles, before: 0n });
  const names = listed.flatMap(({ file }) => (file ? [file.name] : []));
  yield create(HttpBodySchema, { contentType });
  for await (const data of zipStream(readAll(files, caller, id, names))) yield create(HttpBodySchema, { data });
}

/** Reads files one after the other. Skips files that no longer exist. */
async function* readAll(
  files: FileCommands,
  caller: SessionCaller,
  id: string,
  names: readonly string[],
): AsyncGenerator<ZipEntry, void, undefined> {
  for (const name of names) {
    const chunks = files.read(caller, id, name)[Symbol.asyncIterator]();
    try {
      const first = await chunks.next().catch((thrown: unknown) => {
        if (asFailure(thrown).slug !== "not-found") throw thrown;
        return undefined;
      });
      if (!first || first.done) continue;
      const { file } = first.value;
      const modifiedAt = file?.modifiedAt ? timestampDate(file.modifiedAt) : new Date(0);
      yield { name, modifiedAt, content: dataOf(first.value, chunks) };
    } finally {
      await chunks.return?.();
    }
  }
}

async function* dataOf(first: FileChunk, rest: AsyncIterator<FileChunk>): AsyncGenerator<Uint8Array, void, undefined> {
  if (first.data.length > 0) yield first.data;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value.data;
}

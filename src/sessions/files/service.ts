import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { type FileService, ListFilesResponseSchema, SessionFileSchema } from "../../gen/pilothouse/v1/file_pb.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { bytesOfBody } from "../../kernel/request-body.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { StoredLogParts } from "../logs/stored-log.ts";
import type { Sessions } from "../sessions.ts";
import { answerArchive } from "./archive.ts";
import {
  announcedBytesOf,
  answerFile,
  assertFileName,
  changeFile,
  type FileChangeParts,
  finishing,
} from "./file-calls.ts";
import { createFileLinks, type FileLinkParts } from "./file-links.ts";
import { listKeptFiles } from "./kept-files.ts";

export interface FileServiceParts extends FileChangeParts, FileLinkParts, StoredLogParts {
  readonly sessions: Pick<Sessions, "files" | "assertRunning">;
}

const defaultPage = 20;

/** List cursor: position of the last file in the order of changes. */
const position = /^[1-9]\d{0,15}$/;

export function createFileService(parts: FileServiceParts): ServiceImplementation<typeof FileService> {
  const { files } = parts.sessions;
  const links = createFileLinks(parts);

  return {
    async put(call, { id, name, content }) {
      assertFileName(name);
      await using use = await links.begin(call, { id, name, method: "put" });
      const announcedBytes = announcedBytesOf(call);
      const { file, created } = await changeFile(parts, call, { id, name }, (write) =>
        files.put(call, id, { name, announcedBytes, data: finishing(bytesOfBody(call, content), write) }),
      );
      use.succeed();
      if (created) call.markCreated();
      return file ?? create(SessionFileSchema);
    },
    async *get(call, { id, name }) {
      assertFileName(name);
      yield* links.readOnce(call, { id, name }, answerFile(call, files.read(call, id, name)));
    },
    async delete(call, { id, name }) {
      assertFileName(name);
      await changeFile(parts, call, { id, name }, async (write) => {
        await write();
        await files.delete(call, id, name);
      });
      return create(EmptySchema);
    },
    createLink: links.create,
    archive: (call, { id }) => answerArchive(files, call, id),
    async list(call, { id, limit = defaultPage, cursor }) {
      const before = BigInt(readCursor(cursor, position) ?? 0);
      const range = { limit: limit + 1, before };
      const listed = await files
        .list(call, id, range)
        .catch((thrown) => listKeptFiles(parts, call, { id, range, thrown }));
      const found = listed.flatMap(({ file, position }) => (file ? [{ id: String(position), file }] : []));
      const page = cutPage(found, limit);
      return create(ListFilesResponseSchema, { data: page.rows.map(({ file }) => file), ...page.position });
    },
  };
}

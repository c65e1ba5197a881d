import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { type FileService, ListFilesResponseSchema, SessionFileSchema } from "../../gen/pilothouse/v1/file_pb.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { bytesOfBody } from "../../kernel/request-body.ts";
import { failFields } from "../../platform/errors.ts";
import { fileNameFault } from "../../platform/file-name.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { Sessions } from "../sessions.ts";
import { answerArchive } from "./archive.ts";
import { announcedBytesOf, answerFile, changeFile, type FileChangeParts, finishing } from "./file-calls.ts";

export interface FileServiceParts extends FileChangeParts {
  readonly sessions: Pick<Sessions, "files">;
}

const defaultPage = 20;

/** List cursor: position of the last file in the order of changes. */
const position = /^[1-9]\d{0,15}$/;

function assertName(name: string): void {
  const fault = fileNameFault(name);
  if (fault !== undefined) throw failFields("validation-failed", { name: fault });
}

export function createFileService(parts: FileServiceParts): ServiceImplementation<typeof FileService> {
  const { files } = parts.sessions;

  return {
    async put(call, { id, name, content }) {
      assertName(name);
      const announcedBytes = announcedBytesOf(call);
      const { file, created } = await changeFile(parts, call, { id, name }, (write) =>
        files.put(call, id, { name, announcedBytes, data: finishing(bytesOfBody(call, content), write) }),
      );
      if (created) call.markCreated();
      return file ?? create(SessionFileSchema);
    },
    async *get(call, { id, name }) {
      assertName(name);
      yield* answerFile(call, files.read(call, id, name));
    },
    async delete(call, { id, name }) {
      assertName(name);
      await changeFile(parts, call, { id, name }, async (write) => {
        await write();
        await files.delete(call, id, name);
      });
      return create(EmptySchema);
    },
    archive: (call, { id }) => answerArchive(files, call, id),
    async list(call, { id, limit = defaultPage, cursor }) {
      const before = BigInt(readCursor(cursor, position) ?? 0);
      const listed = await files.list(call, id, { limit: limit + 1, before });
      const found = listed.flatMap(({ file, position }) => (file ? [{ id: String(position), file }] : []));
      const page = cutPage(found, limit);
      return create(ListFilesResponseSchema, { data: page.rows.map(({ file }) => file), ...page.position });
    },
  };
}

import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { AuditLog, Call } from "../call.ts";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import { type FileService, ListFilesResponseSchema, SessionFileSchema } from "../gen/pilothouse/v1/file_pb.ts";
import { errorTable } from "../platform/error-table.ts";
import { asFailure, failFields } from "../platform/errors.ts";
import { fileNameFault } from "../platform/file-name.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { ServiceImplementation } from "../registry.ts";
import { bytesOfBody } from "../request-body.ts";
import type { Sessions } from "../sessions/sessions.ts";

/** What the service translates to. */
export interface FileServiceParts {
  readonly sessions: Pick<Sessions, "files">;
  readonly db: Database;
  readonly audit: AuditLog;
}

const defaultPage = 20;

/** The cursor of a list: the position of its last file in the order of changes. */
const position = /^[1-9]\d{0,15}$/;

/** No browser runs what is of this type. */
const contentType = "application/octet-stream";

function assertName(name: string): void {
  const fault = fileNameFault(name);
  if (fault !== undefined) throw failFields("validation-failed", { name: fault });
}

/** The length of a body that the client has told; 0 where it has not. */
function lengthOf(call: Call): bigint {
  const told = call.header("content-length") ?? "";
  return /^\d{1,15}$/.test(told) ? BigInt(told) : 0n;
}

/** The bytes of a file; what is to come before its worker hears that it is whole, is done after the last of them. */
async function* finishing(data: AsyncIterable<Uint8Array>, finish: () => Promise<void>): AsyncGenerator<Uint8Array> {
  yield* data;
  await finish();
}

/** Makes the implementation of FileService. */
export function createFileService({
  sessions: { files },
  db,
  audit,
}: FileServiceParts): ServiceImplementation<typeof FileService> {
  /**
   * Changes a file, which no transaction of ours does. So its entry is written just before the worker makes the change, and
   * withdrawn where it is certain that there was none: whoever dies meanwhile, no change is without an entry.
   */
  async function change<T>(call: Call, id: string, name: string, run: (write: () => Promise<void>) => Promise<T>) {
    let entry: string | undefined;
    try {
      return await run(async () => {
        entry = await db.transaction(async (tx) => call.audit(tx, { subject: id, data: { name } }));
      });
    } catch (thrown) {
      const isRefused = errorTable[asFailure(thrown).slug].status < 500;
      if (entry !== undefined && isRefused) await audit.withdraw(entry);
      throw thrown;
    }
  }

  return {
    async put(call, { id, name, content }) {
      assertName(name);
      const announcedBytes = call.body ? lengthOf(call) : 0n;
      const { file, created } = await change(call, id, name, (write) =>
        files.put(call, id, { name, announcedBytes, data: finishing(bytesOfBody(call, content), write) }),
      );
      if (created) call.markCreated();
      return file ?? create(SessionFileSchema);
    },
    async *get(call, { id, name }) {
      assertName(name);
      for await (const { file, data } of files.read(call, id, name)) {
        if (file) call.announce(Number(file.bytes));
        yield create(HttpBodySchema, { data, ...(file && { contentType }) });
      }
    },
    async delete(call, { id, name }) {
      assertName(name);
      await change(call, id, name, async (write) => {
        await write();
        await files.delete(call, id, name);
      });
      return create(EmptySchema);
    },
    async list(call, { id, limit = defaultPage, cursor }) {
      const before = BigInt(readCursor(cursor, position) ?? 0);
      const listed = await files.list(call, id, { limit: limit + 1, before });
      const found = listed.flatMap(({ file, position }) => (file ? [{ id: String(position), file }] : []));
      const page = cutPage(found, limit);
      return create(ListFilesResponseSchema, { data: page.rows.map(({ file }) => file), ...page.position });
    },
  };
}

import { create } from "@bufbuild/protobuf";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { FileChunk } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import { errorTable } from "../../platform/error-table.ts";
import { asFailure, failFields } from "../../platform/errors.ts";
import { fileNameFault } from "../../platform/file-name.ts";
import type { Database } from "../../platform/postgres/database.ts";

/** Browsers never execute content of this type. */
const contentType = "application/octet-stream";

export interface FileChangeParts {
  readonly db: Database;
  readonly audit: AuditLog;
}

interface ChangedFile {
  readonly id: string;
  readonly name: string;
}

export function assertFileName(name: string): void {
  const fault = fileNameFault(name);
  if (fault !== undefined) throw failFields("validation-failed", { name: fault });
}

/**
 * Changes a file on its worker, outside any transaction. `run` writes the audit entry just before the change, so that a
 * crash never leaves a change without an entry. If the change fails with a status below 500, the file is unchanged, and
 * the entry is withdrawn.
 */
export async function changeFile<T>(
  { db, audit }: FileChangeParts,
  call: Call,
  { id, name }: ChangedFile,
  run: (write: () => Promise<void>) => Promise<T>,
): Promise<T> {
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

/** Content-Length of a body; 0 if the header is absent, or if the body is part of the message. */
export function announcedBytesOf(call: Pick<Call, "body" | "header">): bigint {
  const declared = call.header("content-length") ?? "";
  return call.body && /^\d{1,15}$/.test(declared) ? BigInt(declared) : 0n;
}

/** Streams a file from its worker as the response. */
export async function* answerFile(call: Call, chunks: AsyncIterable<FileChunk>): AsyncGenerator<HttpBody> {
  for await (const { file, data } of chunks) {
    if (file) call.announce(Number(file.bytes));
    yield create(HttpBodySchema, { data, ...(file && { contentType }) });
  }
}

/** Yields the bytes of a file, and runs `finish` before the worker is notified that the file is complete. */
export async function* finishing(
  data: AsyncIterable<Uint8Array>,
  finish: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  yield* data;
  await finish();
}

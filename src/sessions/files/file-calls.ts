import { create } from "@bufbuild/protobuf";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { FileChunk } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import { errorTable } from "../../platform/error-table.ts";
import { asFailure } from "../../platform/errors.ts";
import type { Database } from "../../platform/postgres/database.ts";

/** No browser runs what is of this type. */
const contentType = "application/octet-stream";

/** What an entry of a change is written with. */
export interface FileChangeParts {
  readonly db: Database;
  readonly audit: AuditLog;
}

/** Which file of which session is changed. */
interface ChangedFile {
  readonly id: string;
  readonly name: string;
}

/**
 * Changes a file, which no transaction of ours does. So its entry is written just before the worker makes the change, and
 * withdrawn where it is certain that there was none: whoever dies meanwhile, no change is without an entry.
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

/** The length of a body that the client has told; 0 where it has not, or the body is in the message. */
export function announcedBytesOf(call: Pick<Call, "body" | "header">): bigint {
  const told = call.header("content-length") ?? "";
  return call.body && /^\d{1,15}$/.test(told) ? BigInt(told) : 0n;
}

/** Answers a call by a file as it comes from its worker. */
export async function* answerFile(call: Call, chunks: AsyncIterable<FileChunk>): AsyncGenerator<HttpBody> {
  for await (const { file, data } of chunks) {
    if (file) call.announce(Number(file.bytes));
    yield create(HttpBodySchema, { data, ...(file && { contentType }) });
  }
}

/** The bytes of a file; what is to come before its worker hears that it is whole, is done after the last of them. */
export async function* finishing(
  data: AsyncIterable<Uint8Array>,
  finish: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  yield* data;
  await finish();
}

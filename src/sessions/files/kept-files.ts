import type { FileListRequest, ListedFile } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { asFailure } from "../../platform/errors.ts";
import { readStoredLog, type StoredLogParts } from "../logs/stored-log.ts";
import { findSession } from "../store.ts";

interface KeptFilesRequest {
  readonly id: string;
  readonly range: Pick<FileListRequest, "limit" | "before">;
  /** Error of the attempt to list the files on the worker. */
  readonly thrown: unknown;
}

/**
 * Returns the files that an ended session had, from its stored log. Rethrows the error if the session has not ended or
 * the log is not available.
 */
export async function listKeptFiles(
  parts: StoredLogParts,
  call: Call,
  { id, range: { limit, before }, thrown }: KeptFilesRequest,
): Promise<ListedFile[]> {
  if (asFailure(thrown).slug !== "session-destroyed") throw thrown;
  const row = await findSession(parts.db, id, call.principal.accountId);
  const stored = row && (await readStoredLog(parts, row, call.signal));
  if (stored === undefined || stored === "lost") throw thrown;
  return stored.files.filter(({ position }) => before === 0n || position < before).slice(0, limit);
}

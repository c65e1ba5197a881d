import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { type SessionLogPage, SessionLogPageSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { SessionRow } from "../store.ts";
import { logContext } from "./session-log-store.ts";
import { findLog, keptDays } from "./store.ts";

export type StoredLogParts = Pick<PlatformParts, "db" | "clock" | "sealer">;

/** Milliseconds for which the log of an ended session can be read. */
export const keptMs: number = keptDays * 86_400_000;

/** Milliseconds. */
const times = {
  /** Time after the end of a session in which the log may be on its way from the worker to the database. */
  underway: 5_000,
  /** Time between checks for a log that is on its way. */
  poll: 100,
};

/** Maximum bytes of a decompressed log. Workers run hostile pages, so their logs are not trusted. */
const maxLogBytes = 1024 * 1024;

const decompress = promisify(zstdDecompress);

/**
 * Returns the stored log of an ended session, or "lost" if the log is not stored. Returns undefined if the session has
 * not ended or never had a log, or if the log has expired.
 */
export async function readStoredLog(
  { db, clock, sealer }: StoredLogParts,
  row: SessionRow,
  signal: AbortSignal,
): Promise<SessionLogPage | "lost" | undefined> {
  const { id, account_id: accountId, live_at, ended_at, logs } = row;
  if (logs === null || logs === "off" || !live_at || !ended_at) return undefined;
  const endedAt = ended_at.getTime();
  if (clock.now() >= endedAt + keptMs) return undefined;
  for (;;) {
    const sealed = await findLog(db, { id, accountId, endedAt });
    if (sealed) {
      const data = await decompress(sealer.open(sealed, logContext(accountId, id)), { maxOutputLength: maxLogBytes });
      return fromBinary(SessionLogPageSchema, data);
    }
    if (row.ended_reason === "worker_lost" || clock.now() >= endedAt + times.underway || signal.aborted) return "lost";
    await clock.sleep(times.poll, signal);
  }
}

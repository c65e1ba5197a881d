import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { create, fromBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { toLogLevel } from "../../accounts/settings.ts";
import { type SessionLogPage, SessionLogPageSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { ListSessionLogsResponseSchema, type SessionLogService } from "../../gen/pilothouse/v1/session_log_pb.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import type { Clock } from "../../platform/clock.ts";
import { asFailure } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { Database } from "../../platform/postgres/database.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import { makerIdOf } from "../commands/session-caller.ts";
import { noSession, sessionGone } from "../ended-session.ts";
import { isEnded } from "../session-states.ts";
import type { Sessions } from "../sessions.ts";
import { findSession, type SessionRow } from "../store.ts";
import { logContext } from "./session-log-store.ts";
import { findLog, keptDays } from "./store.ts";

export interface SessionLogParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly audit: AuditLog;
  readonly sessions: Pick<Sessions, "logs">;
}

const defaultPage = 20;

/** Milliseconds. */
const times = {
  /** For which the log of an ended session can be read. */
  kept: keptDays * 86_400_000,
  /** After the end, in which the log may be on its way from the worker to the database. */
  underway: 5_000,
  /** Between checks for a log that is on its way. */
  poll: 100,
};

/** Maximum bytes of a decompressed log. Workers run hostile pages, so that their logs are not trusted. */
const maxLogBytes = 1024 * 1024;

const sessionId = idPattern("ses");

/** Cursor and event id: the number of an entry. */
const entryNumber = /^[1-9]\d{0,9}$/;

const decompress = promisify(zstdDecompress);

const emptyPage = (): SessionLogPage => create(SessionLogPageSchema);

export function createSessionLogService(parts: SessionLogParts): ServiceImplementation<typeof SessionLogService> {
  const { db, clock, sealer, audit, sessions } = parts;

  async function find({ principal }: Call, id: string): Promise<SessionRow> {
    const row = sessionId.test(id) ? await findSession(db, id, principal.accountId) : undefined;
    if (!row) throw noSession();
    return row;
  }

  /** Records that a person reads the log of a session that another person created. */
  async function noteReader(call: Call, { id, made_by: maker, logs }: SessionRow): Promise<void> {
    if (logs === null || logs === "off" || maker === makerIdOf(call.principal)) return;
    await db.transaction(async (tx) => {
      audit.append(tx, { call, action: "session.read_log", subject: id });
    });
  }

  /** Returns the stored log of an ended session; undefined if the session never had one, or the log has expired. */
  async function readStored(row: SessionRow, signal: AbortSignal): Promise<SessionLogPage | "lost" | undefined> {
    const { id, account_id: accountId, live_at, ended_at, logs } = row;
    if (logs === null || logs === "off" || !live_at || !ended_at) return undefined;
    const endedAt = ended_at.getTime();
    if (clock.now() >= endedAt + times.kept) return undefined;
    for (;;) {
      const sealed = await findLog(db, { id, accountId, endedAt });
      if (sealed) {
        const data = await decompress(sealer.open(sealed, logContext(accountId, id)), { maxOutputLength: maxLogBytes });
        return fromBinary(SessionLogPageSchema, data);
      }
      if (row.ended_reason === "worker_lost" || clock.now() >= endedAt + times.underway || signal.aborted)
        return "lost";
      await clock.sleep(times.poll, signal);
    }
  }

  /** Reads entries from the worker of a running session; undefined if the session has ended. */
  async function readRunning(call: Call, row: SessionRow, range: { after: number; limit: number }) {
    if (row.status === "provisioning" || row.logs === null || row.logs === "off") return emptyPage();
    try {
      return await sessions.logs.read(call, row.id, range);
    } catch (thrown) {
      if (asFailure(thrown).slug !== "session-destroyed") throw thrown;
      return undefined;
    }
  }

  return {
    async list(call, { id, limit = defaultPage, cursor }) {
      const after = Number(readCursor(cursor, entryNumber) ?? 0);
      let row = await find(call, id);
      if (cursor === undefined) await noteReader(call, row);
      const running = isEnded(row.status) ? undefined : await readRunning(call, row, { after, limit: limit + 1 });
      if (!running) row = await find(call, id);
      const stored = running ?? (await readStored(row, call.signal)) ?? emptyPage();
      const isLost = stored === "lost";
      const { entries, dropped } = isLost ? emptyPage() : stored;
      const { rows: data, position } = cutPage(entriesAfter(entries, after), limit);
      return create(ListSessionLogsResponseSchema, {
        data: [...data],
        ...position,
        level: toLogLevel(row.logs ?? "off"),
        dropped,
        lost: isLost,
        ...(row.ended_at && { expiresAt: timestampFromMs(row.ended_at.getTime() + times.kept) }),
      });
    },
    async *watch(call, { id, afterEventId = "0" }) {
      const row = await find(call, id);
      await noteReader(call, row);
      await call.joinSession(id);
      let last = Number(afterEventId);
      const hadEnded = isEnded(row.status);
      if (!hadEnded && row.logs !== null && row.logs !== "off") {
        try {
          for await (const entry of sessions.logs.follow(call, id, last)) {
            yield entry;
            last = Number(entry.id);
          }
          return;
        } catch (thrown) {
          // The end of the session may be known before its last entries were received.
          if (asFailure(thrown).slug !== "session-destroyed") throw thrown;
        }
      }
      const stored = await readStored(await find(call, id), call.signal);
      const rest = stored && stored !== "lost" ? entriesAfter(stored.entries, last) : [];
      if (hadEnded && rest.length === 0) throw sessionGone(row);
      yield* rest;
    },
  };
}

function entriesAfter(entries: SessionLogPage["entries"], after: number) {
  return entries.filter(({ id }) => Number(id) > after);
}

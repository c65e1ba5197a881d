import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { toLogLevel } from "../../accounts/settings.ts";
import { type SessionLogPage, SessionLogPageSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { ListSessionLogsResponseSchema, type SessionLogService } from "../../gen/pilothouse/v1/session_log_pb.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { asFailure } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import { creatorIdOf } from "../commands/session-caller.ts";
import { noSession, sessionGone } from "../ended-session.ts";
import { isEnded } from "../session-states.ts";
import type { Sessions } from "../sessions.ts";
import { findSession, type SessionRow } from "../store.ts";
import { keptMs, readStoredLog, type StoredLogParts } from "./stored-log.ts";

export interface SessionLogParts extends StoredLogParts {
  readonly audit: AuditLog;
  readonly sessions: Pick<Sessions, "logs">;
}

const defaultPage = 20;

const sessionId = idPattern("ses");

/** Cursor and event id: the number of an entry. */
const entryNumber = /^[1-9]\d{0,9}$/;

const emptyPage = (): SessionLogPage => create(SessionLogPageSchema);

export function createSessionLogService(parts: SessionLogParts): ServiceImplementation<typeof SessionLogService> {
  const { db, audit, sessions } = parts;

  async function find({ principal }: Call, id: string): Promise<SessionRow> {
    const row = sessionId.test(id) ? await findSession(db, id, principal.accountId) : undefined;
    if (!row) throw noSession();
    return row;
  }

  /** Records that a caller other than the creator reads the log of a session. */
  async function recordReader(call: Call, { id, made_by: creator, logs }: SessionRow): Promise<void> {
    if (logs === null || logs === "off" || creator === creatorIdOf(call.principal)) return;
    await db.transaction(async (tx) => {
      audit.append(tx, { call, action: "session.read_log", subject: id });
    });
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
      if (cursor === undefined) await recordReader(call, row);
      const running = isEnded(row.status) ? undefined : await readRunning(call, row, { after, limit: limit + 1 });
      if (!running) row = await find(call, id);
      const stored = running ?? (await readStoredLog(parts, row, call.signal)) ?? emptyPage();
      const isLost = stored === "lost";
      const { entries, dropped } = isLost ? emptyPage() : stored;
      const { rows: data, position } = cutPage(entriesAfter(entries, after), limit);
      return create(ListSessionLogsResponseSchema, {
        data: [...data],
        ...position,
        level: toLogLevel(row.logs ?? "off"),
        dropped,
        lost: isLost,
        ...(row.ended_at && { expiresAt: timestampFromMs(row.ended_at.getTime() + keptMs) }),
      });
    },
    async *watch(call, { id, afterEventId = "0" }) {
      const row = await find(call, id);
      await recordReader(call, row);
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
      const stored = await readStoredLog(parts, await find(call, id), call.signal);
      const rest = stored && stored !== "lost" ? entriesAfter(stored.entries, last) : [];
      if (hadEnded && rest.length === 0) throw sessionGone(row);
      yield* rest;
    },
  };
}

function entriesAfter(entries: SessionLogPage["entries"], after: number) {
  return entries.filter(({ id }) => Number(id) > after);
}

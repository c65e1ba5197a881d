import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { findEntitlement } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import { type Session, SessionUpdatedEventSchema, type UpdateSessionRequest } from "../gen/pilothouse/v1/session_pb.ts";
import type { Limits } from "../limits/limits.ts";
import { counted } from "../platform/counted.ts";
import { fail, failFields } from "../platform/errors.ts";
import { fleetCommands } from "../platform/grpc/fleet-commands.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { SessionCaller } from "./commands/session-caller.ts";
import type { WorkerCommands } from "./commands/worker-commands.ts";
import { noSession, sessionGone } from "./ended-session.ts";
import { toSessionMessage } from "./session-message.ts";
import { isEnded } from "./session-states.ts";
import { lockSession, type SessionChanges, type SessionRow, updateSession } from "./store.ts";

export interface SessionUpdateParts extends Pick<PlatformParts, "db" | "bus"> {
  readonly events: EventLog;
  readonly limits: Limits;
}

/** Changes the timeouts or labels of a session. */
export type UpdateSession = (caller: SessionCaller, request: UpdateSessionRequest) => Promise<Session>;

/** Reads the changes of an update, as named by its mask. */
function readChanges({ updateMask, timeoutSeconds, idleTimeoutSeconds, labels }: UpdateSessionRequest): SessionChanges {
  const paths = new Set(updateMask?.paths);
  const given = { timeout_seconds: timeoutSeconds, idle_timeout_seconds: idleTimeoutSeconds };
  const cleared = Object.entries(given).filter(([name, value]) => paths.has(name) && value === undefined);
  if (cleared.length > 0)
    throw failFields("validation-failed", Object.fromEntries(cleared.map(([name]) => [name, "cannot be cleared"])));
  return {
    ...(paths.has("timeout_seconds") && { timeoutSeconds }),
    ...(paths.has("idle_timeout_seconds") && { idleTimeoutSeconds }),
    ...(paths.has("labels") && { labels }),
  };
}

export function createSessionUpdate(parts: SessionUpdateParts, commands: WorkerCommands): UpdateSession {
  const { db, events, bus, limits } = parts;

  async function assertLifetime(tx: Tx, row: SessionRow, { timeoutSeconds = 0 }: SessionChanges): Promise<void> {
    if (timeoutSeconds === 0) return;
    if (row.live_at === null)
      throw fail("conflict", {}, { detail: "the session is being launched: wait until its status is live" });
    const { longestSessionSeconds: longest, name } = limits.of(await findEntitlement(tx, row.account_id));
    if (timeoutSeconds > longest)
      throw failFields("validation-failed", { timeout_seconds: `must be at most ${longest} on tier ${name}` });
  }

  /** Commits the changes and their event. */
  function change(caller: SessionCaller, id: string, changes: SessionChanges) {
    const { accountId } = caller.principal;
    return db.transaction(async (tx) => {
      const row = await lockSession(tx, id);
      if (row?.account_id !== accountId) throw noSession();
      if (isEnded(row.status)) throw sessionGone(row);
      await assertLifetime(tx, row, changes);
      const { remainingMs, ...changed } = await updateSession(tx, id, changes);
      if (changes.timeoutSeconds !== undefined && remainingMs <= 0) {
        const age = counted(Math.ceil(changes.timeoutSeconds - remainingMs / 1_000), "second");
        throw failFields("validation-failed", {
          timeout_seconds: `must be more: the session has been live for ${age}`,
        });
      }
      const { labels, idle_timeout_seconds: idleTimeoutSeconds } = changed;
      const expiresAt = timestampFromDate(changed.expires_at);
      const data = create(SessionUpdatedEventSchema, { sessionId: id, expiresAt, idleTimeoutSeconds, labels });
      await events.append(tx, { accountId, subject: id }, SessionUpdatedEventSchema, data);
      caller.audit?.(tx, { subject: id, data: { changed: Object.keys(changes) } });
      tx.afterCommit(() => bus.publish("session-changed", id));
      return { changed, remainingMs };
    });
  }

  return async (caller, request) => {
    const { id } = request;
    const changes = readChanges(request);
    const { timeoutSeconds, idleTimeoutSeconds } = changes;
    const isTimed = timeoutSeconds !== undefined || idleTimeoutSeconds !== undefined;
    // Changes nothing, but fails before the commit if the worker does not know the command.
    if (isTimed) await commands.run(caller, id, fleetCommands.setTimeouts, {});
    const { changed, remainingMs } = await change(caller, id, changes);
    if (isTimed) {
      await commands.run(caller, id, fleetCommands.setTimeouts, {
        number: changed.timeouts_number,
        ...(timeoutSeconds !== undefined && { remainingMs: Math.max(1, remainingMs) }),
        ...(idleTimeoutSeconds !== undefined && { idleTimeoutSeconds }),
      });
    }
    return toSessionMessage(changed);
  };
}

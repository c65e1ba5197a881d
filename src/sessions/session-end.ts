import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../events/event-log.ts";
import type { WorkerEventKey } from "../events/store.ts";
import { SessionCompletedEventSchema, SessionFailedEventSchema } from "../gen/pilothouse/v1/session_pb.ts";
import { publishChange } from "../kernel/account-change.ts";
import { type MeteredSpan, meter } from "../limits/usage.ts";
import type { Bus } from "../platform/bus.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { Profiles } from "../profiles/profiles.ts";
import { durationOf } from "./ended-session.ts";
import { toReasonMessage } from "./session-message.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import { endings, type StoredEndedReason } from "./session-states.ts";
import { endedPatch, type SessionRow, transition, transitionAll } from "./store.ts";

export interface SessionEndParts {
  readonly events: EventLog;
  readonly bus: Bus;
  readonly sessionMetrics: SessionMetrics;
  readonly profiles: Pick<Profiles, "uses">;
}

export interface EndCause {
  readonly reason: StoredEndedReason;
  /** Cause of a failure, for the terminal event. */
  readonly detail?: string;
  /** Whether the worker is lost, so that it cannot save the profile. */
  readonly isWorkerGone?: boolean;
}

/** End of one session, and the conditions for ending it. */
export interface SessionEndRequest extends EndCause {
  /** Milliseconds since the session ended, if the worker reports the end late. */
  readonly agoMs?: number;
  readonly accountId?: string;
  readonly placementEpoch?: bigint;
  readonly workerKey?: WorkerEventKey;
}

async function appendEnd(events: EventLog, tx: Tx, row: SessionRow, cause: SessionEndRequest): Promise<void> {
  const owner = { accountId: row.account_id, subject: row.id, ...(cause.workerKey && { workerKey: cause.workerKey }) };
  const durationMs = BigInt(durationOf(row));
  const data = { sessionId: row.id, durationMs, endedReason: toReasonMessage(cause.reason) };
  if (endings[cause.reason] === "completed") {
    await events.append(tx, owner, SessionCompletedEventSchema, create(SessionCompletedEventSchema, data));
  } else {
    const failed = create(SessionFailedEventSchema, { ...data, detail: cause.detail ?? "" });
    await events.append(tx, owner, SessionFailedEventSchema, failed);
  }
}

async function endProfileUse(
  { uses }: SessionEndParts["profiles"],
  tx: Tx,
  row: SessionRow,
  cause: EndCause,
): Promise<void> {
  const { isWorkerGone = false } = cause;
  await uses.end(tx, { sessionId: row.id, isUnused: row.live_at === null, isWorkerGone });
}

/** Metered time of an ended session. */
function spanOf({ account_id: accountId, live_at, ended_at }: SessionRow): MeteredSpan[] {
  return live_at && ended_at ? [{ accountId, from: live_at.getTime(), to: ended_at.getTime(), isFetch: false }] : [];
}

/** Appends the terminal event of an ended session, and ends its use of the profile. */
async function settleEnd(
  { events, bus, sessionMetrics, profiles }: SessionEndParts,
  tx: Tx,
  row: SessionRow,
  cause: SessionEndRequest,
): Promise<void> {
  await appendEnd(events, tx, row, cause);
  if (row.profile_id !== null) await endProfileUse(profiles, tx, row, cause);
  tx.afterCommit(() => {
    sessionMetrics.ended.inc({ reason: cause.reason });
    bus.publish("session-ended", row.id);
    const { account_id: accountId, agent_session_id: id } = row;
    if (id !== null) publishChange(bus, { accountId, resource: "agent_session", id, change: "gone" });
    bus.publish("slot-freed", row.account_id);
  });
}

/**
 * Ends a session and appends its terminal event. Returns undefined if the session has ended already or does not meet
 * the conditions.
 */
export async function endSession(
  parts: SessionEndParts,
  tx: Tx,
  id: string,
  cause: SessionEndRequest,
): Promise<SessionRow | undefined> {
  const { reason, accountId, placementEpoch, agoMs = 0 } = cause;
  const row = await transition(tx, id, endings[reason], endedPatch(reason, agoMs), {
    ...(accountId !== undefined && { accountId }),
    ...(placementEpoch !== undefined && { placementEpoch }),
  });
  if (!row) return undefined;
  meter(tx, spanOf(row));
  await settleEnd(parts, tx, row, cause);
  return row;
}

/**
 * Ends those of the sessions that are running, and returns their number. Statements are pipelined: the number of round
 * trips does not depend on the number of sessions.
 */
export async function endSessions(
  parts: SessionEndParts,
  tx: Tx,
  ids: readonly string[],
  cause: EndCause,
): Promise<number> {
  if (ids.length === 0) return 0;
  const rows = await transitionAll(tx, ids, endings[cause.reason], endedPatch(cause.reason, 0));
  meter(tx, rows.flatMap(spanOf));
  await Promise.all(rows.map((row) => settleEnd(parts, tx, row, cause)));
  return rows.length;
}

import type { SessionEndedReason, SessionStatus } from "../gen/pilothouse/v1/session_pb.ts";
import type { NamesOf } from "../platform/rest-json/names.ts";

/** Where a session is in its life, as its row says it. */
export type StoredSessionStatus = NamesOf<typeof SessionStatus>;

/** Why a session ended, as its row says it. */
export type StoredEndedReason = NamesOf<typeof SessionEndedReason>;

/** What moves a session on. */
export type SessionTrigger = "launched" | "challenged" | "resolved" | "completed" | "failed";

interface Transition {
  readonly from: readonly StoredSessionStatus[];
  readonly to: StoredSessionStatus;
}

/** The statuses of sessions that have not ended: those that count against the tier's limit. */
export const runningStatuses = ["provisioning", "live", "paused"] as const satisfies readonly StoredSessionStatus[];

/** The whole life of a session. An ended session stays as it is: nothing leads out of `destroyed` and `errored`. */
export const transitions: Readonly<Record<SessionTrigger, Transition>> = {
  launched: { from: ["provisioning"], to: "live" },
  challenged: { from: ["live"], to: "paused" },
  resolved: { from: ["paused"], to: "live" },
  completed: { from: runningStatuses, to: "destroyed" },
  failed: { from: runningStatuses, to: "errored" },
};

/** How a session ends for each reason: cleanly, or by a fault. */
export const endings: Readonly<Record<StoredEndedReason, "completed" | "failed">> = {
  destroyed: "completed",
  expired: "completed",
  idle: "completed",
  quota: "completed",
  crashed: "failed",
  worker_lost: "failed",
  failed_to_start: "failed",
};

/** Says whether a session has ended. */
export function isEnded(status: StoredSessionStatus): boolean {
  return status === "destroyed" || status === "errored";
}

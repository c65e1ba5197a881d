import type { SessionEndedReason, SessionStatus } from "../gen/pilothouse/v1/session_pb.ts";
import type { NamesOf } from "../platform/rest-json/field-names.ts";

export type StoredSessionStatus = NamesOf<typeof SessionStatus>;

export type StoredEndedReason = NamesOf<typeof SessionEndedReason>;

export type SessionTrigger = "launched" | "challenged" | "resolved" | "completed" | "failed";

interface Transition {
  readonly from: readonly StoredSessionStatus[];
  readonly to: StoredSessionStatus;
}

/** Statuses of sessions that have not ended. Sessions with these statuses count towards the tier's limit. */
export const runningStatuses = ["provisioning", "live", "paused"] as const satisfies readonly StoredSessionStatus[];

/** All transitions. `destroyed` and `errored` are final. */
export const transitions: Readonly<Record<SessionTrigger, Transition>> = {
  launched: { from: ["provisioning"], to: "live" },
  challenged: { from: ["live"], to: "paused" },
  resolved: { from: ["paused"], to: "live" },
  completed: { from: runningStatuses, to: "destroyed" },
  failed: { from: runningStatuses, to: "errored" },
};

/** Whether each reason counts as completion or as failure of the session. */
export const endings: Readonly<Record<StoredEndedReason, "completed" | "failed">> = {
  destroyed: "completed",
  expired: "completed",
  idle: "completed",
  quota: "completed",
  worker_drained: "completed",
  crashed: "failed",
  worker_lost: "failed",
  failed_to_start: "failed",
};

export function isEnded(status: StoredSessionStatus): boolean {
  return status === "destroyed" || status === "errored";
}

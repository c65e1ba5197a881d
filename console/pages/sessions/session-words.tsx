import { type Session, SessionEndedReason, SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { StateBadge, type States } from "../../ui/badge.tsx";

const states: States<SessionStatus> = {
  [SessionStatus.UNSPECIFIED]: ["Unknown", "neutral"],
  [SessionStatus.PROVISIONING]: ["Starting", "accent"],
  [SessionStatus.LIVE]: ["Live", "good"],
  [SessionStatus.PAUSED]: ["Paused", "warn"],
  [SessionStatus.DESTROYED]: ["Ended", "neutral"],
  [SessionStatus.ERRORED]: ["Failed", "bad"],
};

export function SessionBadge({ status }: { readonly status: SessionStatus }) {
  return <StateBadge states={states} state={status} isLive={status === SessionStatus.LIVE} />;
}

/** Returns the name of a session: its label `name`, else the end of its id. */
export const titleOf = ({ id, labels }: Session): string => labels.name ?? `Session …${id.slice(-8)}`;

/** Returns whether a session has a browser. */
export const isRunning = (status: SessionStatus): boolean =>
  status === SessionStatus.PROVISIONING || status === SessionStatus.LIVE || status === SessionStatus.PAUSED;

const reasons: Readonly<Record<SessionEndedReason, string>> = {
  [SessionEndedReason.UNSPECIFIED]: "",
  [SessionEndedReason.DESTROYED]: "ended by its owner",
  [SessionEndedReason.EXPIRED]: "lifetime over",
  [SessionEndedReason.IDLE]: "unused for too long",
  [SessionEndedReason.QUOTA]: "no session minutes left",
  [SessionEndedReason.CRASHED]: "browser crashed",
  [SessionEndedReason.WORKER_LOST]: "worker lost",
  [SessionEndedReason.FAILED_TO_START]: "failed to start",
  [SessionEndedReason.WORKER_DRAINED]: "worker stopped for maintenance",
};

/** Returns why a session ended. */
export const reasonText = (reason: SessionEndedReason): string => reasons[reason] ?? "";

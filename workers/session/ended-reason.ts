import { SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";

const NAMES: Readonly<Record<number, string>> = {
  [SessionEndedReason.EXPIRED]: "expired",
  [SessionEndedReason.IDLE]: "idle",
  [SessionEndedReason.QUOTA]: "quota",
  [SessionEndedReason.CRASHED]: "crashed",
  [SessionEndedReason.WORKER_LOST]: "worker_lost",
  [SessionEndedReason.FAILED_TO_START]: "failed_to_start",
};

/** The name of a reason, as clients see it. */
export function endedReasonName(reason: SessionEndedReason): string {
  return NAMES[reason] ?? "destroyed";
}

/** What every operation on an ended session answers. */
export function endedFailure(reason: SessionEndedReason): Failure {
  const name = endedReasonName(reason);
  return fail("session-destroyed", { ended_reason: name }, { detail: `the session has ended: ${name}` });
}

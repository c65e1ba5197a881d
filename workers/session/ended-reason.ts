import { type SessionEndedReason, SessionEndedReasonSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import { enumNames } from "../../src/platform/rest-json/names.ts";

const names = enumNames(SessionEndedReasonSchema);

/** The name of a reason, as clients see it. */
export function endedReasonName(reason: SessionEndedReason): string {
  return names.get(reason) ?? "destroyed";
}

/** What every operation on an ended session answers. */
export function endedFailure(reason: SessionEndedReason): Failure {
  const name = endedReasonName(reason);
  return fail("session-destroyed", { ended_reason: name }, { detail: `the session has ended: ${name}` });
}

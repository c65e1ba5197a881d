import { type SessionEndedReason, SessionEndedReasonSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import { enumNames } from "../../src/platform/rest-json/field-names.ts";

const names = enumNames(SessionEndedReasonSchema);

/** Returns the public name of a reason, or `destroyed` for an unknown reason. */
export function endedReasonName(reason: SessionEndedReason): string {
  return names.get(reason) ?? "destroyed";
}

/** Creates the failure for operations on an ended session. */
export function endedFailure(reason: SessionEndedReason): Failure {
  const name = endedReasonName(reason);
  return fail("session-destroyed", { ended_reason: name }, { detail: `the session has ended: ${name}` });
}

import { defineJob, type JobKind } from "../../kernel/job-kind.ts";
import { Failure } from "../../platform/errors.ts";
import type { Ids } from "../../platform/ids.ts";
import type { SessionCaller } from "../commands/session-caller.ts";
import type { Sessions } from "../sessions.ts";

const second = 1_000;

/** Job kind that notifies workers of control changes, with one queue partition per session. */
export const controlNotificationJob = { kind: "control" } as const;

/** Identifies the session of a control change. */
export interface ControlNotification {
  readonly sessionId: string;
  readonly accountId: string;
}

export interface ControlNotifierParts {
  readonly sessions: Pick<Sessions, "notifyControl">;
  readonly ids: Ids;
}

/**
 * Creates the job kind that notifies a session's worker of its control holder. The job is committed with the change.
 * Otherwise, after a crash of the gateway, the previous holder's keys would stay pressed, and viewers would not see the
 * new holder.
 */
export function createControlNotifier({ sessions, ids }: ControlNotifierParts): JobKind<ControlNotification> {
  return defineJob({
    ...controlNotificationJob,
    width: 1,
    timeout: 5 * second,
    schedule: [second, 5 * second, 30 * second],
    async run({ data: { sessionId, accountId } }, signal) {
      const caller: SessionCaller = {
        principal: { accountId, tier: "free", overrides: [] },
        signal,
        deadline: Number.POSITIVE_INFINITY,
        requestId: ids.next("req"),
        traceparent: "",
      };
      await sessions.notifyControl(caller, sessionId).catch((thrown: unknown) => {
        if (!(thrown instanceof Failure && thrown.slug === "session-destroyed")) throw thrown;
      });
    },
  });
}

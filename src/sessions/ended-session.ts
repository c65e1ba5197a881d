import { type Failure, fail } from "../platform/errors.ts";
import type { StoredEndedReason } from "./session-states.ts";

export interface EndColumns {
  readonly live_at: Date | null;
  readonly ended_at: Date | null;
  readonly ended_reason: StoredEndedReason | null;
}

/** Milliseconds from live to end; 0 if the session never became live or has not ended. */
export function durationOf({ live_at, ended_at }: EndColumns): number {
  return live_at && ended_at ? Math.max(0, ended_at.getTime() - live_at.getTime()) : 0;
}

/** The failure for commands on an ended session. */
export function sessionGone(end: EndColumns): Failure {
  const extensions = {
    ended_reason: end.ended_reason ?? "destroyed",
    ended_at: (end.ended_at ?? new Date(0)).toISOString(),
    duration_ms: durationOf(end),
  };
  return fail("session-destroyed", extensions, {
    detail: `the session has ended (${extensions.ended_reason}): create another`,
  });
}

/** The failure for an unknown session or a session of another account. */
export const noSession = (): Failure => fail("not-found", {}, { detail: "no session has this id" });

import { counted } from "../../platform/counted.ts";
import { type Failure, fail } from "../../platform/errors.ts";

/** Maximum number of creates of an account that wait for a slot. */
const maxWaiting = 100;

/** The account runs as many sessions as its tier permits, or other creates wait before this one. */
export interface AtLimit {
  readonly kind: "at-limit";
  readonly limit: number;
  readonly refusal: Failure;
}

/** Returns whether a create at the limit may wait, or keep its place. */
export function mayWait(create: { waitMs: number | undefined; isQueued: boolean; ahead: number }): boolean {
  const { waitMs = 0, isQueued, ahead } = create;
  return waitMs > 0 && (isQueued || ahead < maxWaiting);
}

/** The failure at the concurrency limit. */
export function atLimit(account: { running: number; ahead: number; limit: number; tier: string }): Failure {
  const { running, ahead, limit, tier } = account;
  const detail =
    running >= limit
      ? `the account runs ${counted(running, "session")}, the maximum on tier ${tier}: end one first`
      : `the account runs ${counted(running, "session")}, and ${counted(ahead, "create")} wait for the others: set wait_for_slot_ms`;
  return fail("concurrency-limit", { current_sessions: running, limit }, { detail });
}

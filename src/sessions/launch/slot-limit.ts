import { lockAccount } from "../../accounts/store.ts";
import type { Tier } from "../../limits/tiers.ts";
import { counted } from "../../platform/counted.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { countRunning } from "../store.ts";
import { countAhead, joinQueue, type SlotWait } from "./slot-wait-store.ts";

/** Maximum number of sessions and fetches of an account that wait at the limit. */
const maxWaiting = 100;

/** The account has reached its limit, counting the sessions and fetches that wait before this one. */
export interface AtLimit {
  readonly kind: "at-limit";
  readonly limit: number;
  readonly refusal: Failure;
}

/** A session or fetch that counts towards the account's limit. */
export interface LimitedCreate extends SlotWait {
  readonly waitMs: number | undefined;
  /** Whether the session or fetch is already in the account's queue. */
  readonly isQueued: boolean;
}

/**
 * Locks the account of a session or fetch. Counts the account's running sessions and fetch browsers, and the sessions
 * and fetches that wait before this one.
 */
export async function lockAndCount(tx: Tx, create: SlotWait) {
  // The statements are sent together. PostgreSQL counts after it has locked the account.
  const [account, running, ahead] = await Promise.all([
    lockAccount(tx, create.accountId),
    countRunning(tx, create.accountId),
    countAhead(tx, create),
  ]);
  return { account, running, ahead };
}

/**
 * Returns undefined below the account's limit. At the limit, adds the session or fetch to the account's queue. Throws
 * `concurrency-limit` if the session or fetch may not wait.
 */
export function queueAtLimit(
  tx: Tx,
  { concurrentSessions: limit, name }: Pick<Tier, "concurrentSessions" | "name">,
  { running, ahead }: { readonly running: number; readonly ahead: number },
  create: LimitedCreate,
): AtLimit | undefined {
  if (running + ahead < limit) return undefined;
  const detail =
    running >= limit
      ? `the account runs ${counted(running, "session")}, the maximum on tier ${name}: end one first`
      : `the account runs ${counted(running, "session")}, and ${counted(ahead, "create")} wait for the others: set wait_for_slot_ms`;
  const refusal = fail("concurrency-limit", { current_sessions: running, limit }, { detail });
  const { waitMs = 0, isQueued } = create;
  if (waitMs <= 0 || (!isQueued && ahead >= maxWaiting)) throw refusal;
  joinQueue(tx, create);
  return { kind: "at-limit", limit, refusal };
}

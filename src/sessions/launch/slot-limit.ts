import { lockAccount } from "../../accounts/store.ts";
import type { Tier } from "../../limits/tiers.ts";
import { counted } from "../../platform/counted.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { countRunning } from "../store.ts";
import { countAhead, joinQueue, type SlotWait } from "./slot-wait-store.ts";

/** Maximum number of creates of an account that wait for a slot. */
const maxWaiting = 100;

/** The account runs as many sessions as its tier permits, or other creates wait before this one. */
export interface AtLimit {
  readonly kind: "at-limit";
  readonly limit: number;
  readonly refusal: Failure;
}

/** A create of an account that needs a slot. */
export interface LimitedCreate extends SlotWait {
  readonly waitMs: number | undefined;
  /** Whether the create already waits in the account's queue. */
  readonly isQueued: boolean;
}

/** Locks the account of a create, and counts its sessions and the creates that wait before this one. */
export async function lockAndCount(tx: Tx, create: SlotWait) {
  // The statements are sent at once. PostgreSQL counts after it has locked the account.
  const [account, running, ahead] = await Promise.all([
    lockAccount(tx, create.accountId),
    countRunning(tx, create.accountId),
    countAhead(tx, create),
  ]);
  return { account, running, ahead };
}

/** Queues a create at the account's limit. Throws if the create may not wait. Returns undefined below the limit. */
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

import { Allowance } from "../../src/platform/allowance.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { IdleMap } from "../../src/platform/idle-map.ts";
import type { GatewayCall } from "../gateway-call.ts";

/**
 * Messages and bytes per second (and burst) that a gateway parses for one account. Parsing 1 MiB takes up to 20 ms of
 * the event loop, so the long messages of one account occupy less than a tenth of the event loop.
 */
const ofAccount = { messages: 2_000, bytes: 4 * 2 ** 20 };

/** Messages below this size do not count towards `bytes`, so that they do not wait for long messages. */
const smallBytes = 16 * 1024;

/**
 * Milliseconds without a message after which an account's allowances are deleted. Longer than any wait for an
 * allowance.
 */
const idleMs = 120_000;

/**
 * Waits until the allowance of the call's account permits a message of this size. Returns undefined if no wait is
 * needed.
 */
export type AwaitAllowance = (call: GatewayCall, bytes: number) => Promise<void> | undefined;

/** Creates the function that waits for the allowance of an account, which all its calls share. */
export function createMessageAllowances(clock: Clock): AwaitAllowance {
  const known = new IdleMap<string, { readonly messages: Allowance; readonly bytes: Allowance }>(idleMs, { clock });
  return ({ accountId, signal }, size) => {
    // Messages of clients without a key have at most 16 KiB, and draw from the bucket of their address.
    if (accountId === undefined) return undefined;
    let account = known.get(accountId);
    if (!account) {
      account = { messages: new Allowance(ofAccount.messages), bytes: new Allowance(ofAccount.bytes) };
      known.set(accountId, account);
    }
    const now = clock.monotonic();
    const byteWaitMs = size < smallBytes ? 0 : account.bytes.use(size, now);
    const waitMs = Math.max(account.messages.use(1, now), byteWaitMs);
    return waitMs < 1 ? undefined : clock.sleep(waitMs, signal);
  };
}

import { isDeepStrictEqual } from "node:util";
import { lockAccount, readArrangedTier, setDisabled, setOverrides, setTier } from "../accounts/store.ts";
import type { Override } from "../kernel/entitlement.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { listGrants, saveGrant } from "./paid-store.ts";
import { advance, type PaidGrant, type PaidTime } from "./paid-time.ts";
import { scheduleCheck } from "./store.ts";
import { type TierName, tiers } from "./tiers.ts";

/** A change of an account's grants by a payment. */
export interface PaidChange {
  /** Whether a payment sandbox caused the change. */
  readonly sandbox: boolean;
  /** Creates, changes or ends grants. */
  apply(time: PaidTime): PaidTime;
}

/**
 * Changes limits of accounts. Other gateways apply a change at once through the bus, or within 5 s when their cache
 * expires.
 */
export interface Arrangements {
  /**
   * Sets the arranged tier, which the operator chooses for an account. It applies unless the account pays for a higher
   * tier. Returns the previous arranged tier.
   */
  setTier(tx: Tx, accountId: string, tier: TierName): Promise<string>;
  /**
   * Applies a change of grants and recomputes the effective tier: the highest of the arranged and the paid tiers.
   * Returns the grants, including grants that ended in this call.
   */
  updateGrants(tx: Tx, accountId: string, change?: PaidChange): Promise<readonly PaidGrant[]>;
  /** Replaces the override of a limit. */
  override(tx: Tx, accountId: string, override: Override): Promise<void>;
  /** Ends an override early. Returns false if there is none. */
  endOverride(tx: Tx, accountId: string, limit: string): Promise<boolean>;
  /** Disables an account (revokes its bearers, ends its sessions) or enables it. Returns false if nothing changes. */
  setDisabled(tx: Tx, accountId: string, isDisabled: boolean): Promise<boolean>;
}

const noChange: PaidChange = { sandbox: false, apply: (time) => time };

export function createArrangements({ clock, bus }: Pick<PlatformParts, "clock" | "bus">): Arrangements {
  function notify(tx: Tx, accountId: string): void {
    // Schedules a quota check, because the remaining minutes of running sessions may have changed.
    scheduleCheck(tx, accountId, clock.now());
    tx.afterCommit(() => bus.publish("bearer-changed", accountId));
  }

  /** Replaces the overrides of a limit, and removes expired overrides of other limits. */
  async function replace(tx: Tx, accountId: string, limit: string, next: readonly Override[]): Promise<boolean> {
    const { overrides } = await lockAccount(tx, accountId);
    const active = overrides.filter(({ expiresAt }) => Date.parse(expiresAt) > clock.now());
    const others = active.filter((override) => override.limit !== limit);
    await setOverrides(tx, accountId, [...others, ...next]);
    notify(tx, accountId);
    return others.length < active.length;
  }

  /** Recomputes and saves the effective tier and the grants. `before` is the arranged tier before the change. */
  async function settle(
    tx: Tx,
    accountId: string,
    sandbox: boolean,
    change: (time: PaidTime) => PaidTime,
  ): Promise<{ readonly before: TierName; readonly grants: readonly PaidGrant[] }> {
    const { tier: served } = await lockAccount(tx, accountId);
    const before = tiers.get((await readArrangedTier(tx, accountId)) ?? served).name;
    const stored = await listGrants(tx, accountId);
    const now = clock.now();
    // Ends expired grants before the change is applied.
    const { arranged, tier, grants } = advance(change(advance({ arranged: before, grants: stored }, now)), now);
    for (const grant of grants) {
      const old = stored.find(({ id }) => id === grant.id);
      if (!old || !isDeepStrictEqual(old, grant)) saveGrant(tx, accountId, sandbox, grant);
    }
    await setTier(tx, accountId, tier, arranged);
    if (tier !== served) notify(tx, accountId);
    return { before, grants };
  }

  return {
    async setTier(tx, accountId, tier) {
      const { before } = await settle(tx, accountId, false, (time) => ({ ...time, arranged: tier }));
      return before;
    },
    updateGrants: async (tx, accountId, { sandbox, apply } = noChange) =>
      (await settle(tx, accountId, sandbox, apply)).grants,
    async override(tx, accountId, override) {
      await replace(tx, accountId, override.limit, [override]);
    },
    endOverride: (tx, accountId, limit) => replace(tx, accountId, limit, []),
    async setDisabled(tx, accountId, isDisabled) {
      // Waits for a concurrent session create. A later create finds the account disabled.
      await lockAccount(tx, accountId);
      const isChanged = await setDisabled(tx, accountId, isDisabled ? new Date(clock.now()) : null);
      if (isChanged) notify(tx, accountId);
      return isChanged;
    },
  };
}

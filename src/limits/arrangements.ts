import type { Override } from "../accounts/entitlement.ts";
import { lockAccount, setDisabled, setOverrides, setTier } from "../accounts/store.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { lookBy } from "./store.ts";
import type { TierName } from "./tiers.ts";

/** Changes what accounts may do: at once where the bus reaches, else within 5 s, when no cache is older. */
export interface Arrangements {
  /** Gives an account another tier; gives the one that it had. */
  setTier(tx: Tx, accountId: string, tier: TierName): Promise<string>;
  /** Puts an override in place of any other of the same limit. */
  override(tx: Tx, accountId: string, override: Override): Promise<void>;
  /** Ends an override before its time; false when there is none. */
  endOverride(tx: Tx, accountId: string, limit: string): Promise<boolean>;
  /** Revokes the bearers of an account, and has its sessions end; or lets it go on without them. False when that is so already. */
  setDisabled(tx: Tx, accountId: string, isDisabled: boolean): Promise<boolean>;
}

/** Makes what changes accounts. */
export function createArrangements({ clock, bus }: { readonly clock: Clock; readonly bus: Bus }): Arrangements {
  function tell(tx: Tx, accountId: string): void {
    // The sessions that run may have other minutes left than was thought, or none.
    lookBy(tx, accountId, clock.now());
    tx.afterCommit(() => bus.publish("bearer-changed", accountId));
  }

  /** Changes the overrides of one limit; those of others that have expired go with it. */
  async function replace(tx: Tx, accountId: string, limit: string, next: readonly Override[]): Promise<boolean> {
    const { overrides } = await lockAccount(tx, accountId);
    const active = overrides.filter(({ expiresAt }) => Date.parse(expiresAt) > clock.now());
    const others = active.filter((override) => override.limit !== limit);
    await setOverrides(tx, accountId, [...others, ...next]);
    tell(tx, accountId);
    return others.length < active.length;
  }

  return {
    async setTier(tx, accountId, tier) {
      const { tier: before } = await lockAccount(tx, accountId);
      await setTier(tx, accountId, tier);
      tell(tx, accountId);
      return before;
    },
    async override(tx, accountId, override) {
      await replace(tx, accountId, override.limit, [override]);
    },
    endOverride: (tx, accountId, limit) => replace(tx, accountId, limit, []),
    async setDisabled(tx, accountId, isDisabled) {
      // A create that is under way has inserted its session by then, or finds the account disabled.
      await lockAccount(tx, accountId);
      const isChanged = await setDisabled(tx, accountId, isDisabled ? new Date(clock.now()) : null);
      if (isChanged) tell(tx, accountId);
      return isChanged;
    },
  };
}

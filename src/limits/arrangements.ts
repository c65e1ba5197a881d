import { isDeepStrictEqual } from "node:util";
import { lockAccount, readArrangedTier, setDisabled, setOverrides, setTier } from "../accounts/store.ts";
import type { Override } from "../kernel/entitlement.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { listGrants, saveGrant } from "./paid-store.ts";
import { advance, type Grant, type PaidTime } from "./paid-time.ts";
import { lookBy } from "./store.ts";
import { type TierName, tiers } from "./tiers.ts";

/** What money does to an account. */
export interface PaidChange {
  /** A sandbox processor is the cause. */
  readonly sandbox: boolean;
  /** Makes, changes or ends grants. */
  apply(time: PaidTime): PaidTime;
}

/** Changes what accounts may do: at once where the bus reaches, else within 5 s, when no cache is older. */
export interface Arrangements {
  /** Arranges another tier for an account, which serves unless a higher one is paid for; gives the one before. */
  setTier(tx: Tx, accountId: string, tier: TierName): Promise<string>;
  /** Has the highest serve of what is arranged and what is paid for, after a change of that; gives what is paid for. */
  serve(tx: Tx, accountId: string, change?: PaidChange): Promise<readonly Grant[]>;
  /** Puts an override in place of any other of the same limit. */
  override(tx: Tx, accountId: string, override: Override): Promise<void>;
  /** Ends an override before its time; false when there is none. */
  endOverride(tx: Tx, accountId: string, limit: string): Promise<boolean>;
  /** Revokes the bearers of an account, and has its sessions end; or lets it go on without them. False when that is so already. */
  setDisabled(tx: Tx, accountId: string, isDisabled: boolean): Promise<boolean>;
}

const noChange: PaidChange = { sandbox: false, apply: (time) => time };

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

  /** Saves what an account is served by after a change of what is arranged or paid for. */
  async function settle(
    tx: Tx,
    accountId: string,
    sandbox: boolean,
    change: (time: PaidTime) => PaidTime,
  ): Promise<{ readonly before: TierName; readonly grants: readonly Grant[] }> {
    const { tier: served } = await lockAccount(tx, accountId);
    const before = tiers.get((await readArrangedTier(tx, accountId)) ?? served).name;
    const stored = await listGrants(tx, accountId);
    const now = clock.now();
    // What has ended meanwhile ended before the change.
    const { arranged, tier, grants } = advance(change(advance({ arranged: before, grants: stored }, now)), now);
    for (const grant of grants) {
      const old = stored.find(({ id }) => id === grant.id);
      if (!old || !isDeepStrictEqual(old, grant)) saveGrant(tx, accountId, sandbox, grant);
    }
    await setTier(tx, accountId, tier, arranged);
    if (tier !== served) tell(tx, accountId);
    return { before, grants };
  }

  return {
    async setTier(tx, accountId, tier) {
      const { before } = await settle(tx, accountId, false, (time) => ({ ...time, arranged: tier }));
      return before;
    },
    serve: async (tx, accountId, { sandbox, apply } = noChange) => (await settle(tx, accountId, sandbox, apply)).grants,
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

import { joinCapacityWaits } from "../../fleet/capacity-waits.ts";
import { place } from "../../fleet/placement.ts";
import type { Limits } from "../../limits/limits.ts";
import { meter } from "../../limits/usage.ts";
import { IdleMap } from "../../platform/idle-map.ts";
import type { Id, Ids } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { notIntegrated } from "../launch/launch-failure.ts";
import { type PlaceAttempt, type PlaceWaitParts, waitForPlace } from "../launch/place-wait.ts";
import { lockAndCount, queueAtLimit } from "../launch/slot-limit.ts";
import { leaveQueue } from "../launch/slot-wait-store.ts";
import type { SessionQuota } from "../session-quota.ts";
import { type FetchOrder, fetchConnectMs, fetchMarginMs } from "./fetch-order.ts";
import { deleteFetch, type FetchBrowser, findSharedBrowser, insertFetch } from "./store.ts";

/** Milliseconds for which a worker keeps the browser of an account after its last fetch. */
const keptFor = 20_000;

export interface FetchPlacementParts extends PlaceWaitParts {
  readonly db: Database;
  readonly ids: Ids;
  readonly limits: Limits;
  readonly quota: SessionQuota;
}

/** A fetch that has been placed on a worker. */
export interface PlacedFetch extends FetchBrowser {
  readonly id: string;
}

/** Attempt to place a fetch. */
interface Attempt {
  readonly id: Id<"fet">;
  /** Whether the fetch is in the queue at the account's limit. */
  readonly isQueued: boolean;
  /** Worker on which the fetch has failed. */
  readonly except: string | undefined;
}

/** Creates the functions that place fetches on workers, and end them. */
export function createFetchPlacement(parts: FetchPlacementParts) {
  const { db, bus, ids, log, limits, quota } = parts;
  /** Worker of each account's last fetch. The worker may still have the browser of the account. */
  const lastWorkers = new IdleMap<string, string>(keptFor, parts);

  /**
   * Counts and inserts the fetch in one transaction. If the fetch cannot share a browser, it is placed like a session,
   * and counts towards the tier's limit.
   */
  function tryPlace(order: FetchOrder, { id, isQueued, except }: Attempt) {
    const { call, request, plan, optionsHash, timeoutMs } = order;
    const { accountId } = call.principal;
    return db.transaction(async (tx): Promise<PlaceAttempt<PlacedFetch>> => {
      const { account, ...counts } = await lockAndCount(tx, { accountId, id });
      const tier = limits.of(account);
      await quota.admit(tx, accountId, account);
      const shared = await findSharedBrowser(tx, accountId, optionsHash);
      let browser = shared?.worker.id === except ? undefined : shared;
      if (!browser) {
        const create = { accountId, id, waitMs: request.waitForSlotMs, isQueued };
        const refused = queueAtLimit(tx, tier, counts, create);
        if (refused) return refused;
        const { runtime } = plan;
        const prefer = lastWorkers.get(accountId);
        const placement = await place(tx, {
          runtime,
          ...(except !== undefined && { except }),
          ...(prefer !== undefined && { prefer }),
        });
        if (placement.kind === "not-integrated") throw notIntegrated(runtime);
        if (placement.kind === "full") joinCapacityWaits(tx, { id, runtime });
        if (placement.kind !== "placed") return placement;
        browser = { browserId: ids.next("fbr"), worker: placement.worker };
      }
      const placed = { ...browser, id };
      const { browserId, worker } = placed;
      if (isQueued) await leaveQueue(tx, id);
      const lapsesAfter = timeoutMs + fetchConnectMs + 2 * fetchMarginMs;
      insertFetch(tx, { id, browserId, accountId, optionsHash, workerId: worker.id, tier: tier.name, lapsesAfter });
      return { kind: "placed", placed };
    });
  }

  /** Places the fetch. Waits in order at the account's limit, and then for a slot of a worker. */
  async function placeFetch(order: FetchOrder, except?: string): Promise<PlacedFetch> {
    const { signal, principal } = order.call;
    const id = ids.next("fet");
    const { placed } = await waitForPlace(parts, {
      accountId: principal.accountId,
      id,
      waitMs: order.request.waitForSlotMs,
      signal,
      failsIfFull: except !== undefined,
      tryPlace: (isQueued) => tryPlace(order, { id, isQueued, except }),
      abandonError: () => signal.reason,
    });
    return placed;
  }

  /** Ends a fetch. If `usedMs` is set, adds the time to the account's usage: whole seconds, at least one. */
  async function end({ call }: FetchOrder, { id }: PlacedFetch, usedMs: number | undefined): Promise<void> {
    const { accountId } = call.principal;
    try {
      await db.transaction(async (tx) => {
        const to = await deleteFetch(tx, id);
        if (to === undefined) return;
        const from = to - Math.max(1, Math.ceil((usedMs ?? 0) / 1_000)) * 1_000;
        if (usedMs !== undefined) meter(tx, [{ accountId, from, to, isFetch: true }]);
        tx.afterCommit(() => {
          bus.publish("capacity", "");
          bus.publish("slot-freed", accountId);
        });
      });
    } catch (error) {
      // The row expires without this transaction, and the client still receives the result.
      log.warn({ err: error, account_id: accountId }, "failed to end a fetch");
    }
  }

  return { placeFetch, end, lastWorkers };
}

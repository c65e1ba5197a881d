import type { WorkerAddress } from "../../fleet/store.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { createFreshCache } from "../../platform/fresh-cache.ts";
import { idPattern } from "../../platform/ids.ts";
import { createListeners } from "../../platform/listeners.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { isDatabaseUnavailable } from "../../platform/postgres/database-unavailable.ts";
import { noSession, sessionGone } from "../ended-session.ts";
import { isEnded, type StoredSessionStatus } from "../session-states.ts";
import { findRoute, type RouteRow } from "../store.ts";

/** Location and epochs of a session. */
export interface SessionRoute {
  readonly row: RouteRow;
  readonly worker: WorkerAddress;
  readonly placementEpoch: bigint;
  readonly controlEpoch: bigint;
  /** Client that holds control; empty if there is none. */
  readonly holderClientId: string;
}

/**
 * Locates sessions. Routes are cached for 5 s, so frequent commands avoid the database. The bus reports when a session
 * changes or ends.
 */
export interface SessionRoutes {
  /** Returns the route of a session, ended or not. Throws `not-found`. */
  find(id: string, accountId: string): Promise<SessionRoute>;
  /** Returns the route of a running session. Throws `not-found`, or `session-destroyed` with the reason of the end. */
  findRunning(id: string, accountId: string): Promise<SessionRoute>;
  /** Like `findRunning`, but reads the route again. A cached route is used only while the database is unavailable. */
  reloadRunning(id: string, accountId: string): Promise<SessionRoute>;
  /** Drops a cached route that may be outdated. */
  forget(id: string): void;
  /** Registers a listener for the end of a session. Returns a function that removes it. */
  onEnd(id: string, listener: () => void): () => void;
  /** Waits until `isReached` returns true for the status of the session, or the time is up. Throws `not-found`. */
  awaitStatus(
    which: { readonly id: string; readonly accountId: string; readonly milliseconds: number },
    isReached: (status: StoredSessionStatus) => boolean,
  ): Promise<void>;
  start(): void;
  stop(): void;
}

/** Milliseconds for which a cached route is used without reading the database. */
const freshFor = 5_000;
/** Milliseconds for which a cached route is used while the database is unavailable. */
const staleFor = 60_000;
/** Milliseconds to wait for the database before an older cached route is used. */
const maxWaitMs = 300;
/** Maximum number of cached routes. */
const capacity = 10_000;

const sessionId = idPattern("ses");

function toRoute(row: RouteRow): SessionRoute {
  return {
    row,
    worker: { id: row.worker_id, address: row.address, secretHash: row.secret_hash },
    placementEpoch: BigInt(row.placement_epoch),
    controlEpoch: BigInt(row.control_epoch),
    holderClientId: row.control_holder ?? "",
  };
}

type SessionRoutesParts = Pick<PlatformParts, "db" | "bus" | "clock">;

export function createSessionRoutes({ db, bus, clock }: SessionRoutesParts): SessionRoutes {
  const ends = createListeners<void>();
  const changes = createListeners<void>();
  const unsubscribes: (() => void)[] = [];
  const cache = createFreshCache<SessionRoute>({
    load: async (id) => {
      const row = await findRoute(db, id);
      return row && toRoute(row);
    },
    isUnavailable: isDatabaseUnavailable,
    freshFor,
    staleFor,
    maxWait: maxWaitMs,
    capacity,
    clock,
  });

  async function find(id: string, accountId: string, read = cache.get): Promise<SessionRoute> {
    const route = sessionId.test(id) ? await read(id) : undefined;
    if (route?.row.account_id !== accountId) throw noSession();
    return route;
  }

  async function findRunning(id: string, accountId: string, read = cache.get): Promise<SessionRoute> {
    const route = await find(id, accountId, read);
    if (isEnded(route.row.status)) throw sessionGone(route.row);
    return route;
  }

  return {
    find: (id, accountId) => find(id, accountId),
    findRunning: (id, accountId) => findRunning(id, accountId),
    reloadRunning: (id, accountId) => findRunning(id, accountId, cache.reload),
    forget: (id) => cache.forget(id),
    onEnd: ends.add,
    async awaitStatus({ id, accountId, milliseconds }, isReached) {
      const deadline = performance.now() + milliseconds;
      // The cached route may be outdated. Later changes renew it.
      cache.forget(id);
      for (let left = milliseconds; left > 0; left = deadline - performance.now()) {
        const changed = new AbortController();
        const unlisten = changes.add(id, () => changed.abort());
        try {
          const { row } = await find(id, accountId);
          if (isReached(row.status)) return;
          await sleep(left, changed.signal);
        } finally {
          unlisten();
        }
      }
    },
    start() {
      if (unsubscribes.length > 0) return;
      unsubscribes.push(
        bus.subscribe("session-changed", (id) => {
          cache.renew(id);
          changes.notify(id);
        }),
        bus.subscribe("session-ended", (id) => {
          cache.forget(id);
          changes.notify(id);
          ends.notify(id);
        }),
      );
    },
    stop() {
      for (const unsubscribe of unsubscribes.splice(0)) unsubscribe();
    },
  };
}

import type { WorkerAddress } from "../../fleet/store.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import type { Bus } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import { createFreshCache } from "../../platform/fresh-cache.ts";
import { idPattern } from "../../platform/ids.ts";
import { createListeners } from "../../platform/listeners.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { isDatabaseAway } from "../../platform/postgres/database-away.ts";
import { noSession, sessionGone } from "../ended-session.ts";
import { isEnded, type StoredSessionStatus } from "../session-states.ts";
import { findRoute, type RouteRow } from "../store.ts";

/** Where a session runs, as its row says it. */
export interface SessionRoute {
  readonly row: RouteRow;
  readonly worker: WorkerAddress;
  readonly placementEpoch: bigint;
  readonly controlEpoch: bigint;
  /** The client of the person who holds control; empty while none does. */
  readonly holderClientId: string;
}

/** Finds where sessions run. Hot commands touch no database: a route is good for 5 s, and an end is told by bus. */
export interface SessionRoutes {
  /** Finds a session of an account, ended or not. Throws `not-found`. */
  find(id: string, accountId: string): Promise<SessionRoute>;
  /** The same for a session that must not have ended: throws `session-destroyed` with how it did. */
  findRunning(id: string, accountId: string): Promise<SessionRoute>;
  /** Forgets a route that may be wrong. */
  forget(id: string): void;
  /** Calls the listener when a session ends, until the returned function is called. */
  onEnd(id: string, listener: () => void): () => void;
  /** Waits until the session's row says what is expected of it, or the time is up. Throws what `find` does. */
  awaitStatus(
    which: { readonly id: string; readonly accountId: string; readonly milliseconds: number },
    isReached: (status: StoredSessionStatus) => boolean,
  ): Promise<void>;
  start(): void;
  stop(): void;
}

/** Milliseconds. */
const freshFor = 5_000;
const staleFor = 60_000;
const patience = 300;
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

interface SessionRoutesParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
}

/** Makes the routes of a gateway. */
export function createSessionRoutes({ db, bus, clock }: SessionRoutesParts): SessionRoutes {
  const ends = createListeners<void>();
  const changes = createListeners<void>();
  const unsubscribes: (() => void)[] = [];
  const cache = createFreshCache<SessionRoute>({
    load: async (id) => {
      const row = await findRoute(db, id);
      return row && toRoute(row);
    },
    isAway: isDatabaseAway,
    freshFor,
    staleFor,
    patience,
    capacity,
    clock,
  });

  async function find(id: string, accountId: string): Promise<SessionRoute> {
    const route = sessionId.test(id) ? await cache.get(id) : undefined;
    if (route?.row.account_id !== accountId) throw noSession();
    return route;
  }

  return {
    find,
    async findRunning(id, accountId) {
      const route = await find(id, accountId);
      if (isEnded(route.row.status)) throw sessionGone(route.row);
      return route;
    },
    forget: (id) => cache.forget(id),
    onEnd: ends.add,
    async awaitStatus({ id, accountId, milliseconds }, isReached) {
      const deadline = performance.now() + milliseconds;
      for (let left = milliseconds; left > 0; left = deadline - performance.now()) {
        const changed = new AbortController();
        const unlisten = changes.add(id, () => changed.abort());
        try {
          cache.forget(id);
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
          cache.forget(id);
          changes.tell(id);
        }),
        bus.subscribe("session-ended", (id) => {
          cache.forget(id);
          changes.tell(id);
          ends.tell(id);
        }),
      );
    },
    stop() {
      for (const unsubscribe of unsubscribes.splice(0)) unsubscribe();
    },
  };
}

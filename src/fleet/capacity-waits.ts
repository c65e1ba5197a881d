import type { Log } from "../platform/log.ts";
import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";

export interface CapacityWaitParts {
  readonly db: Queryable;
  readonly log: Log;
}

/** Seconds from the last renewal of a wait to its expiry. A crashed gateway no longer renews its waits. */
const heldFor = 3;

const joinStatement: NamedStatement = {
  name: "capacity-waits-join",
  // Attempts are 100 ms apart. A row is written again only after a second.
  text: `insert into capacity_waits (id, runtime, waits_until) values ($1, $2, app_now() + $3 * interval '1 second')
    on conflict (id) do update set waits_until = excluded.waits_until
    where capacity_waits.waits_until < app_now() + ($3 - 1) * interval '1 second'`,
};

/**
 * Counts a session or fetch as waiting for a worker with a free slot. Called by each attempt that finds no free slot.
 */
export function joinCapacityWaits(tx: Tx, { id, runtime }: { readonly id: string; readonly runtime: string }): void {
  tx.sendNamed(joinStatement, [id, runtime, heldFor]);
}

const leaveStatement: NamedStatement = {
  name: "capacity-waits-leave",
  text: "delete from capacity_waits where id = $1",
};

/** Ends a wait. If PostgreSQL is unreachable, the wait expires. */
export async function leaveCapacityWaits({ db, log }: CapacityWaitParts, id: string): Promise<void> {
  await db
    .named(leaveStatement, [id])
    .catch((error: unknown) => log.debug({ err: error }, "failed to end a wait for capacity"));
}

const sweepStatement: NamedStatement = {
  name: "capacity-waits-sweep",
  text: "delete from capacity_waits where waits_until < app_now() - interval '1 minute'",
};

/** Deletes the waits that crashed gateways left. */
export async function sweepCapacityWaits(db: Queryable): Promise<void> {
  await db.named(sweepStatement, []);
}

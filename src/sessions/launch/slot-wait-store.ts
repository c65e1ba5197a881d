import type { NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";

/** A session or fetch that may wait at the concurrency limit of its account. */
export interface SlotWait {
  readonly accountId: string;
  readonly id: string;
}

/** Seconds until a place in the queue expires if the gateway does not renew the place. */
const heldFor = 3;

const aheadStatement: NamedStatement = {
  name: "slot-waits-ahead",
  text: `select count(*)::int as ahead from slot_waits where account_id = $1 and waits_until > app_now()
    and position < coalesce((select position from slot_waits where id = $2), 9223372036854775807)`,
};

/** Counts the sessions and fetches of an account that wait before `id`; all of them if `id` is not in the queue. */
export async function countAhead(tx: Tx, { accountId, id }: SlotWait): Promise<number> {
  const [row] = await tx.named<{ ahead: number }>(aheadStatement, [accountId, id]);
  return row?.ahead ?? 0;
}

const joinStatement: NamedStatement = {
  name: "slot-waits-join",
  text: `insert into slot_waits (id, account_id, waits_until) values ($1, $2, app_now() + $3 * interval '1 second')
    on conflict (id) do update set waits_until = excluded.waits_until`,
};

/** Adds a session or fetch at the end of the queue of its locked account, or renews its place. */
export function joinQueue(tx: Tx, { accountId, id }: SlotWait): void {
  tx.sendNamed(joinStatement, [id, accountId, heldFor]);
}

const leaveStatement: NamedStatement = { name: "slot-waits-leave", text: "delete from slot_waits where id = $1" };

/** Removes a session or fetch from its queue. */
export async function leaveQueue(db: Queryable, id: string): Promise<void> {
  await db.named(leaveStatement, [id]);
}

/** Queue of an account, as seen by a gateway with sessions or fetches in the queue. */
export interface SlotQueueState {
  /** Places of the gateway's own sessions and fetches, by id. The first place is 1. */
  readonly places: ReadonlyMap<string, number>;
  /** Number of running sessions and fetch browsers of the account; 0 if `places` is empty. */
  readonly running: number;
}

const renewStatement: NamedStatement = {
  name: "slot-waits-renew",
  text: `with renewed as (
      update slot_waits set waits_until = app_now() + $3 * interval '1 second' where id = any($2)
    )
    select id, place, (
        select count(*)::int from sessions where account_id = $1 and status in ('provisioning', 'live', 'paused')
      ) + (
        select count(distinct browser_id)::int from fetches where account_id = $1 and lapses_at > app_now()
      ) as running
    from (
      select id, row_number() over (order by position)::int as place
      from slot_waits where account_id = $1 and (waits_until > app_now() or id = any($2))
    ) as waits
    where id = any($2)`,
};

/** Renews the places of an account's sessions and fetches, and returns the state of the queue. */
export async function renewWaits(db: Queryable, accountId: string, ids: readonly string[]): Promise<SlotQueueState> {
  const rows = await db.named<{ id: string; place: number; running: number }>(renewStatement, [
    accountId,
    ids,
    heldFor,
  ]);
  return { places: new Map(rows.map(({ id, place }) => [id, place])), running: rows[0]?.running ?? 0 };
}

const sweepStatement: NamedStatement = {
  name: "slot-waits-sweep",
  text: "delete from slot_waits where waits_until < app_now() - interval '1 minute'",
};

/** Deletes places that expired more than a minute ago, because their gateways crashed. */
export async function sweepWaits(db: Queryable): Promise<void> {
  await db.named(sweepStatement, []);
}
